import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { slugOf } from '../../tools/docs/markdown.ts';
import { consoleHtml } from '../../tools/site/console-html.ts';
import { outputPath, siteLink } from '../../tools/site/links.ts';
import { llmsFull, llmsIndex } from '../../tools/site/llms.ts';
import { outline, pagePaths } from '../../tools/site/outline.ts';
import { root } from '../../tools/suite/cli.ts';

const docs = join(root, 'docs');
const sections = outline();
/** Repository files that pages link to, by their path on the site. */
const carried = new Map<string, string>();

const isFolder = (path: string): boolean =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() ?? false;
const address = (path: string): string => `/${path.replace(/(README|index)\.md$/, '').replace(/\.md$/, '')}`;

// The site serves everything that a page needs. Pages load no font, script, or image from another host.
export default defineConfig({
  title: 'Muster',
  description: 'A self-hosted orchestrator for fleets of real machines',
  lang: 'en',
  base: process.env.MUSTER_DOCS_BASE ?? '/',
  outDir: join(root, 'dist/docs'),
  cacheDir: join(root, '.cache/vitepress'),
  cleanUrls: false,
  metaChunk: true,
  rewrites: (path) => path.replace(/(^|\/)README\.md$/, '$1index.md'),
  markdown: {
    anchor: { slugify: slugOf },
    // `{node_id}` in a heading is part of a URL path, not an attribute.
    attrs: { disable: true },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    config: (markdown) => {
      // Pages contain no Vue expressions: `{{` belongs to an expression of the module language.
      for (const rule of ['text', 'code_inline']) {
        const render = markdown.renderer.rules[rule];
        markdown.renderer.rules[rule] = (...args) => (render?.(...args) ?? '').replaceAll('{{', '&#123;&#123;');
      }
      const fence = markdown.renderer.rules.fence;
      markdown.renderer.rules.fence = (tokens, index, ...rest) => {
        const token = tokens[index];
        if (token?.info.trim() === 'console') return consoleHtml(token.content);
        return fence?.(tokens, index, ...rest) ?? '';
      };
      markdown.core.ruler.push('links of the repository', (state) => {
        const page = `docs/${(state.env.realPath ?? state.env.path).slice(docs.length + 1)}`;
        for (const token of state.tokens.flatMap(({ children }) => children ?? [])) {
          if (token.type !== 'link_open') continue;
          const link = siteLink(page, token.attrGet('href') ?? '', isFolder);
          if (link.kind === 'file') {
            carried.set(outputPath(link.href), link.file);
            token.attrSet('target', '_blank');
          }
          if (link.kind === 'folder') token.attrs = [];
          else token.attrSet('href', link.href);
        }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Modules', link: '/modules' },
      { text: 'Command line', link: '/cli' },
      { text: 'API', link: '/api' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      collapsed: ['Decisions', 'Project'].includes(title),
      items: pages.map((page) => ({ text: page.title, link: address(page.path) })),
    })),
    docFooter: { prev: 'Before', next: 'Next' },
  },
  vite: {
    build: { target: 'es2022', chunkSizeWarningLimit: 4000 },
    optimizeDeps: { esbuildOptions: { target: 'es2022' } },
  },
  buildEnd: ({ outDir }) => {
    const put = (path: string, text: string): void => {
      mkdirSync(dirname(join(outDir, path)), { recursive: true });
      writeFileSync(join(outDir, path), text);
    };
    for (const [place, file] of carried) {
      mkdirSync(dirname(join(outDir, place)), { recursive: true });
      copyFileSync(join(root, file), join(outDir, place));
    }
    const read = (path: string): string => readFileSync(join(docs, path), 'utf8');
    for (const path of pagePaths()) put(path, read(path));
    put('llms.txt', llmsIndex(sections));
    put('llms-full.txt', llmsFull(sections, read));
  },
});
