import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Found {
  id: string;
  nodes: { target: string[]; failureSummary?: string }[];
}

/**
 * What axe has against a page, in both themes: what is seen differs between them in nothing but colours.
 * @param part selector of what is looked at; null: all of it
 * @returns a line for each fault
 */
export async function violationsOf(page: Page, part: string | null = null): Promise<string[]> {
  if (!(await page.evaluate('typeof window.axe === "object"'))) await page.evaluate(axe.source);
  await wear(page, 'light');
  const light = await run(page, part, {});
  await wear(page, 'dark');
  const dark = await run(page, part, { runOnly: ['color-contrast', 'link-in-text-block'] });
  await wear(page, 'light');
  return [...light.map((line) => `light: ${line}`), ...dark.map((line) => `dark: ${line}`)];
}

/** Puts a theme on, and waits until it is painted. */
async function wear(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  // What is not on the screen keeps the colours that it had (content-visibility): all of it is laid out anew.
  await page.evaluate(`document.body.style.display = 'none'; document.body.offsetHeight; document.body.style.display = '';
    new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)))
    .then(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished)))`);
}

async function run(page: Page, part: string | null, options: object): Promise<string[]> {
  const settings = { resultTypes: ['violations'], reporter: 'v1', ...options };
  const violations = (await page.evaluate(
    `axe.run(${part === null ? 'document' : JSON.stringify(part)}, ${JSON.stringify(settings)}).then(({ violations }) =>
      violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })))`,
  )) as Found[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id}: ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`,
    ),
  );
}
