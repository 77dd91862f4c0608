import { posix } from 'node:path';

/** Where the links of a page of docs/, which hold on a shelf of files, lead to on the site. */

/** Files outside docs/ that have a page of their own on the site, by that page. */
const homes: Readonly<Record<string, string>> = {
  'README.md': 'docs/README.md',
  'CONTRIBUTING.md': 'docs/contributing.md',
};

/** Below this folder of the site are files of the repository that pages point at. */
const filesFolder = 'files';

export type SiteLink =
  /** An address elsewhere, an anchor, or another page: it stays. */
  | { kind: 'page'; href: string }
  /** A file of the repository, which the site carries as it is. `file` is relative to the repository. */
  | { kind: 'file'; href: string; file: string }
  /** A folder of the repository, which has nothing to show. */
  | { kind: 'folder' };

/**
 * @param page path of the page that has the link, relative to the repository
 * @param isFolder whether a path relative to the repository is a folder
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

/** The path of the site under which a file of the repository is found. */
export const placeOf = (href: string): string => href.replace(/^\//, '');
