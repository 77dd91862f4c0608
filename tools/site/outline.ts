import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../suite/cli.ts';

/** The reading order of the pages of docs/, for the sidebar of the site and llms.txt. */

export interface Page {
  /** Path relative to docs/. */
  path: string;
  /** The first heading of the page. */
  title: string;
  /** The first one or two sentences of the page, as plain text. */
  summary: string;
}

export interface Section {
  title: string;
  pages: Page[];
}

/** A name that ends in `/` stands for the pages of that folder, in the order of their names. */
const sections: Readonly<Record<string, readonly string[]>> = {
  Start: ['README.md', 'getting-started.md', 'concepts.md', 'glossary.md', 'coming-from.md'],
  Modules: ['modules.md', 'module-kinds.md'],
  Recipes: ['recipes/'],
  Console: ['console.md'],
  'Command line': ['cli.md', 'cli-reference.md'],
  API: ['api.md', 'sign-in-by-hand.md', 'errors.md'],
  Operations: ['operations.md', 'operations/'],
  Security: ['security.md', 'threat-model.md', 'hardening.md', 'audit-events.md'],
  Project: ['architecture.md', 'contributing.md', 'style.md', 'checklists/'],
  Decisions: ['decisions/'],
};

const docs = join(root, 'docs');

/** Paths of all pages, relative to docs/. */
export function pagePaths(): string[] {
  return readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.startsWith('.'))
    .sort();
}

/** Pages that match an entry of the outline. A folder's own page comes first. */
function pagesOf(name: string, all: readonly string[]): string[] {
  if (!name.endsWith('/')) return all.filter((path) => path === name);
  const inside = all.filter((path) => path.startsWith(name));
  return inside.sort((one, other) => Number(other.endsWith('/index.md')) - Number(one.endsWith('/index.md')));
}

/** Pages that no section lists, so that readers could not find them. */
export function orphans(all: readonly string[] = pagePaths()): string[] {
  const named = new Set(Object.values(sections).flatMap((names) => names.flatMap((name) => pagesOf(name, all))));
  return all.filter((path) => !named.has(path));
}

/** First heading and first paragraph of a page. */
export function headOf(markdown: string): { title: string; summary: string } {
  const body = markdown.replace(/^---\n[\s\S]*?\n---\n/, '').replace(/<!--[\s\S]*?-->/g, '');
  const title = /^# (.+)$/m.exec(body)?.[1] ?? '';
  const [, afterTitle = body] = body.split(/^# .+$/m);
  const paragraph = afterTitle.split(/\n\s*\n/).find((text) => !/^\s*([#|<>]|```|[*-]\s|$)/.test(text)) ?? '';
  const plain = paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const sentences = plain.match(/.+?[.:!?](?=\s|$)/g) ?? [plain];
  let summary = sentences[0] ?? '';
  for (const sentence of sentences.slice(1)) if (summary.length + sentence.length < 200) summary += sentence;
  return { title: title.replaceAll(/`/g, ''), summary: summary.replace(/:$/, '.') };
}

/** Sections with their pages. Omits sections without pages. */
export function outline(): Section[] {
  const all = pagePaths();
  return Object.entries(sections)
    .map(([title, names]) => ({
      title,
      pages: names
        .flatMap((name) => pagesOf(name, all))
        .map((path) => ({ path, ...headOf(readFileSync(join(docs, path), 'utf8')) })),
    }))
    .filter(({ pages }) => pages.length > 0);
}
