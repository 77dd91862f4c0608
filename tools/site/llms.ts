import type { Section } from './outline.ts';

/** What programs that read documentation are given: an index (llms.txt) and everything in one file (llms-full.txt). */

const about =
  'Muster is a self-hosted orchestrator for fleets of real machines: one orchestrator, one agent on each machine, desired state in YAML modules, a plan before every change, drift told within about a second, and removal that puts back what was there before.';

/** The index, as https://llmstxt.org describes it. Addresses are those of the pages as markdown, beside the site's. */
export function llmsIndex(sections: readonly Section[]): string {
  const lines = ['# Muster', '', `> ${about}`, ''];
  for (const { title, pages } of sections) {
    lines.push(`## ${title === 'Decisions' ? 'Optional' : title}`, '');
    for (const page of pages) lines.push(`- [${page.title}](${page.path})${page.summary ? `: ${page.summary}` : ''}`);
    lines.push('');
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

/**
 * Every page, one after the other.
 * @param read the text of a page, by its path
 */
export function llmsFull(sections: readonly Section[], read: (path: string) => string): string {
  const pages = sections.flatMap((section) => section.pages);
  const texts = pages.map(({ path }) => `<!-- ${path} -->\n\n${read(path).trim()}\n`);
  return `<!-- Muster: its whole documentation in one file. -->\n\n${texts.join('\n')}`;
}
