// node drive.mjs FOLDER: people before browsers of their own. Reads a line of JSON a step from stdin
// ({"who", "do", ...}), does it, and answers by a line: {"ok": ...} or {"fault": "..."}. Pictures go
// to FOLDER. Elements are found by the names that a screen reader tells. tests/e2e/browser.py speaks
// it.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const [folder] = process.argv.slice(2);
const wait_ms = 1000 * Number(process.env.WAIT_S || 240);
const axe_source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const views = [
  { name: 'light', width: 1200, height: 900, colorScheme: 'light' },
  { name: 'dark', width: 1200, height: 900, colorScheme: 'dark' },
  { name: 'phone', width: 360, height: 780, colorScheme: 'light' },
];
// A4 without its margins.
const paper = { width: Math.round(182 / 25.4 * 96), height: Math.round(267 / 25.4 * 96) };
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-dev-shm-usage'],
});
const people = new Map();

// A browser without history. `scripts`: false, as with JavaScript off.
async function enter({ who, root, scripts = true }) {
  const context = await browser.newContext({ baseURL: root, javaScriptEnabled: scripts,
    viewport: { width: views[0].width, height: views[0].height }, acceptDownloads: true });
  context.setDefaultTimeout(wait_ms);
  const page = await context.newPage();
  const person = { page, context, errors: [] };
  page.on('pageerror', (error) => person.errors.push(error.message));
  // The status of the page itself is its step's to judge.
  page.on('console', (message) => message.type() === 'error' &&
    !message.text().startsWith('Failed to load resource') && person.errors.push(message.text()));
  page.on('request', (request) => request.url().startsWith(root) ||
    request.url().startsWith('data:') || person.errors.push(request.url()));
  people.set(who, person);
}

// Waits until `act` has led to another page.
async function leave(page, act) {
  const next_page = page.waitForEvent('framenavigated');
  await act();
  await next_page;
  await page.waitForLoadState();
}

// Controls that the Tab key does not reach, and those whose focus cannot be seen.
async function unreached(page) {
  await page.evaluate(() => {
    // Tab goes on from the last focus: it begins at the page's first element.
    getSelection().removeAllRanges();
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
    window.reached = new Set();
    window.unseen = new Set();
  });
  for (let stop = 0; stop < 400; ++stop) {
    await page.keyboard.press('Tab');
    const more = await page.evaluate(() => {
      const at = document.activeElement;
      if (at === document.body || window.reached.has(at)) return false;
      window.reached.add(at);
      const outlined = getComputedStyle(at).opacity === '0' ? at.nextElementSibling : at;
      if (getComputedStyle(outlined).outlineStyle === 'none') window.unseen.add(at);
      return true;
    });
    if (!more) break;
  }
  return page.evaluate(() => {
    document.activeElement.blur();
    const name = (each) => `${each.localName} ${each.id || each.name || each.innerText}`;
    // The arrow keys lead from one radio button of a group to the next.
    const groups = new Set([...window.reached].filter((each) => each.type === 'radio')
      .map((each) => each.name));
    const controls = [...document.querySelectorAll(
      'a[href], button, input, select, textarea, summary, [tabindex="0"]')];
    return [...controls.filter((each) => each.checkVisibility() && !each.disabled &&
      each.type !== 'hidden' && !window.reached.has(each) && !groups.has(each.name)).map(name),
    ...[...window.unseen].map((each) => `unseen: ${name(each)}`)];
  });
}

// Controls out of the keyboard's reach, axe's findings and pictures in each view; if `brief`, the
// first view alone, and no keyboard.
async function look(page, { name, brief }) {
  await page.waitForLoadState();
  const found = { violations: [], wide: [] };
  found.unreached = brief ? [] : await unreached(page);
  found.headings = await page.locator('h1').count();
  for (const view of brief ? views.slice(0, 1) : views) {
    await page.emulateMedia({ colorScheme: view.colorScheme });
    await page.setViewportSize({ width: view.width, height: view.height });
    await page.screenshot({ path: path.join(folder, `${name}.${view.name}.png`), fullPage: true });
    if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth))
      found.wide.push(view.name);
    await page.evaluate(axe_source);
    const axe = await page.evaluate(() => axe.run());
    for (const each of axe.violations)
      found.violations.push(`${view.name}: ${each.id}: ${each.nodes[0].target} ` +
        each.nodes[0].failureSummary);
  }
  await page.emulateMedia({ colorScheme: views[0].colorScheme });
  await page.setViewportSize({ width: views[0].width, height: views[0].height });
  return found;
}

const steps = {
  async go({ page }, { to }) {
    const reply = await page.goto(to);
    return reply.status();
  },
  where: async ({ page }) => new URL(page.url()).pathname + new URL(page.url()).search,
  title: ({ page }) => page.title(),
  async read({ page }, { of }) {
    return page.locator(of).first().innerText();
  },
  html: ({ page }, { of }) => page.locator(of).first().innerHTML(),
  all: ({ page }, { of }) => page.locator(of).allInnerTexts(),
  has: async ({ page }, { of }) => await page.locator(of).count() > 0,
  wait: ({ page }, { text }) => page.getByText(text).first().waitFor(),
  fill: ({ page }, { label, text }) => page.getByLabel(label, { exact: true }).fill(text),
  check: ({ page }, { label }) => page.getByLabel(label, { exact: true }).check(),
  choose: ({ page }, { label, text }) =>
    page.getByLabel(label, { exact: true }).selectOption({ label: text }),
  upload: ({ page }, { label, file }) => page.getByLabel(label).setInputFiles(file),
  // A click that leads to another page.
  click: ({ page }, { role, name, within }) => leave(page, () =>
    (within ? page.locator(within) : page).getByRole(role, { name, exact: true }).first().click()),
  // Enter, likewise.
  enter_key: ({ page }) => leave(page, () => page.keyboard.press('Enter')),
  open: ({ page }, { name }) =>
    page.locator('details', { hasText: name }).first().evaluate((each) => { each.open = true; }),
  async download({ page }, { name, file }) {
    const coming = page.waitForEvent('download');
    await page.getByRole('link', { name, exact: true }).first().click();
    await (await coming).saveAs(file);
  },
  async press({ page }, { keys }) {
    for (const key of keys) await page.keyboard.press(key);
  },
  type: ({ page }, { text }) => page.keyboard.insertText(text),
  letters: ({ page }, { text }) => page.keyboard.type(text),
  // Presses Tab until an element has the focus whose name is `name`.
  async tab({ page }, { name }) {
    const seen = [];
    for (let i = 0; i < 60; ++i) {
      await page.keyboard.press('Tab');
      const focus = await page.evaluate(() => {
        const at = document.activeElement;
        const shown = getComputedStyle(at).outlineStyle !== 'none';
        const label = at.labels && at.labels.length ? at.labels[0].innerText : at.innerText;
        return { name: (label || at.getAttribute('aria-label') || '').trim(), shown };
      });
      if (!focus.shown && focus.name) throw new Error(`the focus on "${focus.name}" cannot be seen`);
      if (focus.name === name) return seen;
      seen.push(focus.name);
    }
    throw new Error(`Tab does not reach "${name}": ${seen.join(' | ')}`);
  },
  // A live page goes on to another when its job moves: the look then begins again.
  async look({ page, errors }, step) {
    for (let attempt = 1; ; ++attempt) {
      try {
        const found = await look(page, step);
        return { errors: errors.splice(0), ...found };
      } catch (error) {
        if (attempt === 5 || !error.message.includes('navigation')) throw error;
      }
    }
  },
  // On paper, for a reader who prefers dark: the PDF, and the faults of the page as it is printed.
  async print({ page }, { file }) {
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.setViewportSize(paper);
    const found = await page.evaluate(() => {
      const shown = (each) => each.checkVisibility() && each.getBoundingClientRect().width > 1;
      const name = (each) => `${each.localName}.${each.className} ${each.textContent.slice(0, 40)}`;
      const all = [...document.querySelectorAll('body *')].filter(shown);
      const clips = (each) => getComputedStyle(each).overflow !== 'visible' &&
        (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1);
      return {
        controls: all.filter((each) => each.matches('nav, button, .button, input, select')).map(name),
        cut: all.filter((each) => !each.closest('svg') &&
          (clips(each) || each.getBoundingClientRect().right > innerWidth + 1)).map(name),
        background: getComputedStyle(document.body).backgroundColor,
      };
    });
    await page.pdf({ path: file, preferCSSPageSize: true, printBackground: true });
    await page.emulateMedia({ media: null, colorScheme: views[0].colorScheme });
    await page.setViewportSize({ width: views[0].width, height: views[0].height });
    return found;
  },
  async leave(person, { who }) {
    people.delete(who);
    await person.context.close();
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  let answer;
  try {
    const ok = step.do === 'enter' ? await enter(step) : await steps[step.do](people.get(step.who), step);
    answer = { ok: ok ?? null };
  } catch (error) {
    const page = people.get(step.who)?.page;
    if (page) await page.screenshot({ path: path.join(folder, 'fault.png') }).catch(() => {});
    answer = { fault: `${line}: ${error.message} at ${page?.url()}` };
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
