import type { Plugin } from 'vite';

/**
 * Loads a chunk with its own script tag before the page's script, so that it runs as soon as it arrives. The page's
 * imports resolve to the same module instance. The chunk must not import other chunks.
 */
export function startFirst(name: string): Plugin {
  return {
    name: 'muster-start-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle = {} }) {
        const chunk = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === name);
        if (chunk?.type !== 'chunk') throw new Error(`no chunk has the name ${name}`);
        if (chunk.imports.length > 0)
          throw new Error(
            `${name} must not import ${chunk.imports.join()}: add the imported modules to its group in vite.config.ts`,
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
