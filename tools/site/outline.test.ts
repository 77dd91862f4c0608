import { describe, expect, test } from 'vitest';
import { llmsFull, llmsIndex } from './llms.ts';
import { headOf, orphans, outline, pagePaths } from './outline.ts';

describe('the outline of the documentation', () => {
  test('lists every page once', () => {
    const named = outline().flatMap(({ pages }) => pages.map(({ path }) => path));
    expect(named.toSorted()).toEqual(pagePaths());
    expect(orphans(['README.md', 'lost.md', 'recipes/nginx.md', 'elsewhere/x.md'])).toEqual([
      'lost.md',
      'elsewhere/x.md',
    ]);
  });

  test('gives every page a title and most pages a summary', () => {
    const pages = outline().flatMap((section) => section.pages);
    expect(pages.filter(({ title }) => title === '')).toEqual([]);
    expect(pages.filter(({ summary }) => summary === '').map(({ path }) => path)).toEqual([]);
  });

  test("uses a page's first paragraph, as plain text, for its summary", () => {
    const page = '<!-- made -->\n# A `page`\n\n| no | text |\n\nSee [it](x.md), *now*. And then\nmore.\n\nAnother.\n';
    expect(headOf(page)).toEqual({ title: 'A page', summary: 'See it, now. And then more.' });
  });
});

describe('files for programs', () => {
  const sections = [
    { title: 'Start', pages: [{ path: 'a.md', title: 'A', summary: 'First.' }] },
    { title: 'Decisions', pages: [{ path: 'd/b.md', title: 'B', summary: '' }] },
  ];

  test('lists all pages in the index, with decisions as optional', () => {
    const index = llmsIndex(sections);
    expect(index).toMatch(/^# Muster\n\n> Muster is .+\n\n## Start\n/);
    expect(index).toContain('- [A](a.md): First.\n');
    expect(index).toContain('## Optional\n\n- [B](d/b.md)\n');
  });

  test('joins all pages into one text', () => {
    const full = llmsFull(sections, (path) => `# ${path}\n\ntext of ${path}\n`);
    expect(full).toContain('<!-- a.md -->\n\n# a.md\n\ntext of a.md\n');
    expect(full.indexOf('text of a.md')).toBeLessThan(full.indexOf('text of d/b.md'));
  });
});
