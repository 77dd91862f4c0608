import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

interface SiteOptions {
  name: string;
  /** The site's directory. */
  root: string;
  /** Number of pages. Default: 20. */
  pages?: number;
  /** Number of directories. Default: 5. */
  directories?: number;
  greeting?: string;
  /** `held` runs until the file `go` exists in the site's directory. */
  script?: 'built' | 'slow' | 'held' | 'none';
}

const directories = ['', '/assets', '/assets/css', '/assets/img', '/pages'];
export const pagePath = (root: string, page: number): string =>
  `${root}${['', '/assets/css', '/assets/img', '/pages'][page % 4]}/page-${page}.html`;

/** Returns how often the script has run. Each run writes one line to the log. */
export function runsOf(root: string): number {
  try {
    return readFileSync(`${root}/log`, 'utf8').split('\n').filter(Boolean).length;
  } catch {
    return 0;
  }
}

/** Returns a module with directories, pages, and a script between the pages, in JSON. */
export function siteModule(options: SiteOptions): string {
  const { name, root, pages = 20, directories: count = 5, greeting = 'hello', script = 'built' } = options;
  const resources: object[] = directories.slice(0, count).map((path, index) => ({
    id: `dir-${index}`,
    resource: { 'directory-unix': { path: `${root}${path}`, mode: '0755' } },
  }));
  for (let page = 0; page < pages; page++) {
    const content = page === 0 ? `${greeting}\n` : `page ${page}\nof ${name}\n`;
    resources.push({
      id: `page-${page}`,
      resource: { 'file-unix': { path: pagePath(root, page), content, mode: '0644' } },
    });
    if (page === 9 && script !== 'none') resources.push({ id: 'index', resource: { script: scripts[script](root) } });
  }
  return JSON.stringify({ name, supports: [{ platform: 'linux' }], resources });
}

const scripts = {
  built: (root: string) => ({
    program: 'sh',
    manages: `${root}/index`,
    rerun_on: ['page-0'],
    check: `test -f '${root}/index'`,
    apply: `echo ran >> '${root}/log'; cat '${root}/page-0.html' > '${root}/index'; echo built the index`,
    undo: `rm '${root}/index'; echo undone >> '${root}/log'`,
  }),
  slow: (root: string) => afterStart(root, 'sleep 0.3'),
  held: (root: string) => afterStart(root, `until test -e '${root}/go'; do sleep 0.05; done`),
};

/** Returns a script that writes the log last, so that `check` succeeds only after a complete run. */
function afterStart(root: string, wait: string) {
  return {
    program: 'sh',
    manages: `${root}/log`,
    check: `test -s '${root}/log'`,
    apply: `touch '${root}/started'; ${wait}; echo ran >> '${root}/log'`,
    undo: `rm -f '${root}/log' '${root}/started'`,
  };
}

/** Returns the mode and content of a directory and everything in it, by path. Empty if the directory does not exist. */
export function treeOf(root: string): Record<string, string> {
  const tree: Record<string, string> = {};
  const visit = (path: string, shown: string) => {
    const stats = statSync(path);
    const mode = (stats.mode & 0o7777).toString(8).padStart(4, '0');
    tree[shown] = stats.isDirectory() ? `${mode} directory` : `${mode} ${readFileSync(path, 'utf8')}`;
    if (stats.isDirectory()) for (const name of readdirSync(path).sort()) visit(join(path, name), join(shown, name));
  };
  try {
    visit(root, '.');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return tree;
}
