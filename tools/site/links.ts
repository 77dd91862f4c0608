import { posix } from 'node:path';

/** Converts links between files in the repository, such as those on pages in docs/, to links on the site. */

/** Site pages for files outside docs/. */
const homes: Readonly<Record<string, string>> = {
  'README.md': 'docs/README.md',
  'CONTRIBUTING.md': 'docs/contributing.md',
};

/** Site folder for the repository files to which pages link. */
const filesFolder = 'files';

export type SiteLink =
  /** An external address, an anchor, or another page. */
  | { kind: 'page'; href: string }
  /** A file in the repository that the site serves unchanged. `file` is relative to the repository. */
  | { kind: 'file'; href: string; file: string }
  /** A folder in the repository. The site has no page for it. */
  | { kind: 'folder' };

/**
 * Converts a link.
 * @param page path of the page that contains the link, relative to the repository
 * @param isFolder reports whether a path relative to the repository is a folder
 */
export function siteLink(page: string, href: string, isFolder: (path: string) => boolean): SiteLink {
  if (/^([a-z][a-z0-9+.-]*:|#|\/)/i.test(href)) return { kind: 'page', href };
  const [path = '', anchor] = href.split('#');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  const target = posix.normalize(posix.join(posix.dirname(page), decodeURIComponent(path)));
  const home = homes[target] ?? target;
  if (home.startsWith('docs/') && home.endsWith('.md')) {
    const from = posix.dirname(page).startsWith('docs') ? posix.dirname(page) : 'docs';
    const relative = posix.relative(from, home).replace(/(^|\/)README\.md$/, '$1index.md');
    return { kind: 'page', href: `${relative.startsWith('.') ? relative : `./${relative}`}${hash}` };
  }
  if (isFolder(target)) return { kind: 'folder' };
  const inside = target.startsWith('docs/') ? target.slice('docs/'.length) : target;
  return { kind: 'file', href: `/${filesFolder}/${inside}`, file: target };
}

/** Returns the path of a served file in the site's output folder. */
export const outputPath = (href: string): string => href.replace(/^\//, '');
