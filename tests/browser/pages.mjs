// node pages.mjs FOLDER OUT [NAME...]: serves the pages of FOLDER under the policy in its
// policy.txt, opens each (or those named) in light, in dark and on a phone, and writes pictures to
// OUT. Prints a line of JSON a view: axe's violations, errors of the console, whether the page is
// wider than its window, milliseconds to the first paint, and how many bytes it has compressed.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import zlib from 'node:zlib';
import { chromium } from 'playwright-core';

const [folder, out, ...names] = process.argv.slice(2);
const axe_source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const policy = fs.readFileSync(path.join(folder, 'policy.txt'), 'utf8');
const pages = fs.readdirSync(folder).filter((name) => name.endsWith('.html'))
  .filter((name) => names.length === 0 || names.includes(path.basename(name, '.html'))
    || (names.includes('dial') && name.startsWith('board')));
const views = [
  { name: 'light', width: 1200, height: 900, colorScheme: 'light' },
  { name: 'dark', width: 1200, height: 900, colorScheme: 'dark' },
  { name: 'phone', width: 360, height: 780, colorScheme: 'light' },
];

const server = http.createServer((request, reply) => {
  const url = new URL(request.url, 'http://localhost');
  const at_two = Number(url.searchParams.get('p')) === 2;
  const name = url.pathname === '/' ? (at_two ? 'board-p2.html' : 'board.html')
    : path.basename(url.pathname);
  if (!pages.includes(name)) {
    // A job's events never come here.
    reply.writeHead(request.url.includes('/events') ? 204 : 404).end();
    return;
  }
  reply.writeHead(200, { 'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy, 'x-content-type-options': 'nosniff' });
  reply.end(fs.readFileSync(path.join(folder, name)));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const root = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-dev-shm-usage'],
});

async function look(name, view) {
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height }, colorScheme: view.colorScheme,
  });
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('request', (request) => request.url().startsWith(root) || request.url().startsWith('data:')
    || errors.push(request.url()));
  await page.goto(root + name);
  await page.waitForFunction(
    () => performance.getEntriesByName('first-contentful-paint').length > 0);
  const seen = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth > window.innerWidth,
    first_paint_ms: Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime),
    headings: document.querySelectorAll('h1').length,
  }));
  const stem = path.basename(name, '.html');
  await page.screenshot({ path: path.join(out, `${stem}.${view.name}.png`), fullPage: true });
  for (const details of await page.locator('details').all())
    await details.evaluate((element) => { element.open = true; });
  await page.evaluate(axe_source);
  const found = await page.evaluate(() => axe.run());
  const violations = found.violations.map(
    (each) => `${each.id}: ${each.nodes[0].target} ${each.nodes[0].failureSummary}`);
  const compressed = zlib.gzipSync(fs.readFileSync(path.join(folder, name))).length;
  console.log(JSON.stringify({ page: stem, view: view.name, violations, errors, compressed, ...seen }));
  await context.close();
}

const fast_counts = (page) =>
  page.locator('#board-table td:nth-child(3)').allTextContents();

// The dial: by the keyboard with scripts, by a link without. Both end at the same table.
async function turnTheDial() {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  const page = await context.newPage();
  await page.goto(root);
  await page.keyboard.press('Tab');
  const first_stop = await page.evaluate(() => document.activeElement.textContent);
  const before = await fast_counts(page);
  await page.locator('#dial').focus();
  for (let i = 0; i < 20; ++i) await page.keyboard.press('ArrowRight');
  const shown = await page.locator('#dial-value').textContent();
  await page.waitForFunction(() => location.search.includes('p=2'));
  const after = await fast_counts(page);
  const kept_focus = await page.evaluate(() => document.activeElement.id === 'dial');
  await context.close();
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const still = await plain.newPage();
  await still.goto(root);
  await still.locator('#board-presets a', { hasText: /^2$/ }).click();
  const without = await fast_counts(still);
  await plain.close();
  console.log(JSON.stringify({ page: 'dial', first_stop, shown, kept_focus, before, after, without }));
}

for (const name of pages) for (const view of views) await look(name, view);
if (names.length === 0 || names.includes('dial')) await turnTheDial();
await browser.close();
server.close();
