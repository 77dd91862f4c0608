import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../suite/cli.ts';

/** The order of the pages in docs/, for the site's sidebar and llms.txt. */

export interface Page {
  /** Path relative to docs/. */
  path: string;
  /** The first heading of the page. */
  title: string;
  /** The first sentences of the page, as plain text. */
  summary: string;
}

export interface Section {
  title: string;
  pages: Page[];
}

/** Pages by section. A name that ends in `/` stands for the pages in that folder, sorted by name. */
const sections: Readonly<Record<string, readonly string[]>> = {
  Start: ['README.md', 'getting-started.md', 'concepts.md', 'glossary.md', 'coming-from.md'],
  Modules: ['modules.md', 'expressions.md', 'cel-conformance.md', 'module-kinds.md', 'rewriting-a-role.md'],
  Recipes: ['recipes/'],
  Console: ['console.md'],
  'Command line': ['cli.md', 'cli-reference.md'],
  API: ['api.md', 'sign-in-by-hand.md', 'errors.md'],
  Operations: ['operations.md', 'replicas.md', 'operations/', 'performance.md'],
  Security: ['security.md', 'threat-model.md', 'hardening.md', 'audit-events.md'],
  Project: ['architecture.md', 'contributing.md', 'style.md', 'checklists/'],
  Decisions: ['decisions/'],
};

const docs = join(root, 'docs');

/** Returns the paths of all pages, relative to docs/. */
export function pagePaths(): string[] {
  return readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.startsWith('.'))
    .sort();
}

/** Returns the pages that match an entry of the outline. The index page of a folder comes first. */
function pagesOf(name: string, all: readonly string[]): string[] {
  if (!name.endsWith('/')) return all.filter((path) => path === name);
  const inside = all.filter((path) => path.startsWith(name));
  return inside.sort((one, other) => Number(other.endsWith('/index.md')) - Number(one.endsWith('/index.md')));
}

/** Returns the pages that no section lists and that readers could therefore not find. */
export function orphans(all: readonly string[] = pagePaths()): string[] {
  const named = new Set(Object.values(sections).flatMap((names) => names.flatMap((name) => pagesOf(name, all))));
  return all.filter((path) => !named.has(path));
}

/** Returns a page's first heading and summary. */
export function headOf(markdown: string): { title: string; summary: string } {
  const body = markdown.replace(/^---\n[\s\S]*?\n---\n/, '').replace(/<!--[\s\S]*?-->/g, '');
  const title = /^# (.+)$/m.exec(body)?.[1] ?? '';
  const [, afterTitle = body] = body.split(/^# .+$/m);
  const paragraph = afterTitle.split(/\n\s*\n/).find((text) => !/^\s*([#|<>]|```|[*-]\s|$)/.test(text)) ?? '';
  const paragraphText = paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const sentences = paragraphText.match(/.+?[.:!?](?=\s|$)/g) ?? [paragraphText];
  let summary = sentences[0] ?? '';
  for (const sentence of sentences.slice(1)) if (summary.length + sentence.length < 200) summary += sentence;
  return { title: title.replaceAll(/`/g, ''), summary: summary.replace(/:$/, '.') };
}

/** Returns the sections with their pages. Omits sections without pages. */
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
