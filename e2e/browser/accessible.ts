import axe from 'axe-core';
import type { Page } from 'playwright-core';
import type { Tab } from './tab.ts';

interface Found {
  id: string;
  nodes: { target: string[]; failureSummary?: string }[];
}

/**
 * Checks the accessibility of a page with axe.
 * @param part selector of the part to check; null to check the whole page
 * @param theme 'dark' checks only colors, the only difference between the themes
 * @returns one line per violation
 */
async function violationsOf(page: Page, part: string | null, theme: 'light' | 'dark'): Promise<string[]> {
  if (!(await page.evaluate('typeof window.axe === "object"'))) await page.evaluate(axe.source);
  return await run(page, part, theme === 'light' ? {} : { runOnly: ['color-contrast', 'link-in-text-block'] });
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

const themes = ['light', 'dark'] as const;

/** Checks the accessibility of the current page in both themes. @returns violations, each prefixed with the theme */
export async function inBothThemes({ page }: Tab, part: string | null): Promise<string[]> {
  const faults: string[] = [];
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme });
    await page.evaluate('new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))');
    const shown = await page.evaluate('document.documentElement.dataset.theme');
    if (shown !== theme) faults.push(`the page shows the theme ${shown} instead of ${theme}`);
    faults.push(...(await violationsOf(page, part, theme)).map((fault) => `${theme}: ${fault}`));
  }
  return faults;
}
