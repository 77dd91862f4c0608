import type { Section } from './outline.ts';

/** Generates files for programs that read documentation: an index (llms.txt) and the full text (llms-full.txt). */

const about =
  'Muster is a self-hosted orchestrator for fleets of real machines: one orchestrator, one agent on each machine, desired state in YAML modules, a plan before every change, drift reported within about a second, and removal that restores the previous state.';

/** Returns the index, in the format of https://llmstxt.org. Its links point to the Markdown versions of the pages. */
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
 * Returns the text of all pages.
 * @param read returns the text of a page by its path
 */
export function llmsFull(sections: readonly Section[], read: (path: string) => string): string {
  const pages = sections.flatMap((section) => section.pages);
  const texts = pages.map(({ path }) => `<!-- ${path} -->\n\n${read(path).trim()}\n`);
  return `<!-- Muster: its whole documentation in one file. -->\n\n${texts.join('\n')}`;
}
