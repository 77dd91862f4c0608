import type { Plugin } from 'vite';

/**
 * Makes the chunk of this name a script of its own, before the page's: it runs as soon as it is there, and not only when
 * all that the page begins with is. The page imports it too, and gets the one that ran. It may need no other: what it
 * imports belongs into it.
 */
export function startFirst(name: string): Plugin {
  return {
    name: 'muster-start-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle = {} }) {
        const chunk = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === name);
        if (chunk?.type !== 'chunk') throw new Error(`no chunk is named ${name}`);
        if (chunk.imports.length > 0)
          throw new Error(
            `${name} must wait for ${chunk.imports.join()}: take what it imports from there into its group`,
          );
        const lines = html.split('\n');
        const page = lines.findIndex((line) => line.includes('<script type="module"'));
        if (page < 0) throw new Error('the page has no script');
        const script = (lines[page] as string).replace(/src="[^"]*"/, `src="/${chunk.fileName}"`);
        const others = lines.filter(
          (line) => !(line.includes('modulepreload') && line.includes(`/${chunk.fileName}"`)),
        );
        return others.toSpliced(page, 0, script).join('\n');
      },
    },
  };
}
