// node look.mjs PAGE.html FOLDER: opens a page in light, in dark, on a phone and on paper, and
// writes what it sees to FOLDER. Prints a line of JSON a view: axe's violations, errors, whether the
// page is wider than its window, milliseconds to the first paint.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [page_path, folder] = process.argv.slice(2);
const axe_source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const views = [
  { name: 'light', width: 1100, height: 900, colorScheme: 'light' },
  { name: 'dark', width: 1100, height: 900, colorScheme: 'dark' },
  { name: 'phone', width: 360, height: 780, colorScheme: 'light' },
];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-dev-shm-usage'],
});
for (const view of views) {
  // The page forbids all scripts; the test's own are let in.
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.colorScheme,
    bypassCSP: true,
  });
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('request', (request) => request.url().startsWith('file:') || errors.push(request.url()));
  await page.goto(pathToFileURL(path.resolve(page_path)).href);
  await page.waitForFunction(
    () => performance.getEntriesByName('first-contentful-paint').length > 0);
  const seen = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth > window.innerWidth,
    first_paint_ms: performance.getEntriesByName('first-contentful-paint')[0].startTime,
  }));
  await page.screenshot({ path: path.join(folder, `${view.name}.png`), fullPage: true });
  if (view.name === 'light')
    await page.pdf({ path: path.join(folder, 'paper.pdf'), format: 'A4', preferCSSPageSize: true, printBackground: true });
  for (const details of await page.locator('details').all())
    await details.evaluate((element) => { element.open = true; });
  await page.addScriptTag({ content: axe_source });
  const found = await page.evaluate(() => axe.run());
  const violations = found.violations.map(
    (each) => `${each.id}: ${each.nodes[0].target} ${each.nodes[0].failureSummary}`);
  console.log(JSON.stringify({ view: view.name, violations, errors, ...seen }));
  await context.close();
}
await browser.close();
