// node first_paint.mjs TIMES URL [TOKEN]: opens a page as often, each time in a browser that has
// nothing of it, and prints a line of JSON: for each time milliseconds from the start of the
// navigation to the first paint of content and to the end of the load, and the bytes of the
// document as sent and as shown. With TOKEN, requests bear it.
import { chromium } from 'playwright-core';

const [times, url, token] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-dev-shm-usage'],
});
const seen = [];
for (let i = 0; i < Number(times); ++i) {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 900 },
    ...(token ? { extraHTTPHeaders: { Authorization: `Bearer ${token}` } } : {}),
  });
  const page = await context.newPage();
  const reply = await page.goto(url);
  if (reply && !reply.ok()) throw new Error(`${url}: ${reply.status()}`);
  await page.waitForFunction(
    () => performance.getEntriesByName('first-contentful-paint').length > 0);
  seen.push(await page.evaluate(() => {
    const [load] = performance.getEntriesByType('navigation');
    return {
      first_paint_ms: Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime),
      load_ms: Math.round(load.loadEventEnd),
      sent_bytes: load.encodedBodySize,
      shown_bytes: load.decodedBodySize,
      requests: 1 + performance.getEntriesByType('resource').length,
    };
  }));
  await context.close();
}
await browser.close();
console.log(JSON.stringify({ url, seen }));
