import { expect, test } from 'vitest';
import { siteLink } from './links.ts';

const isFolder = (path: string): boolean => path === 'examples';

test.each([
  ['docs/cli.md', 'https://example.org/x.md', { kind: 'page', href: 'https://example.org/x.md' }],
  ['docs/cli.md', '#terminals', { kind: 'page', href: '#terminals' }],
  ['docs/cli.md', 'operations.md#drift', { kind: 'page', href: './operations.md#drift' }],
  ['docs/recipes/nginx.md', '../modules.md', { kind: 'page', href: '../modules.md' }],
  ['docs/decisions/0001-x.md', '../../CONTRIBUTING.md', { kind: 'page', href: '../contributing.md' }],
  ['docs/architecture.md', '../README.md#start', { kind: 'page', href: './index.md#start' }],
  [
    'docs/architecture.md',
    '../tools/arrows.ts',
    { kind: 'file', href: '/files/tools/arrows.ts', file: 'tools/arrows.ts' },
  ],
  ['docs/api.md', 'openapi.json', { kind: 'file', href: '/files/openapi.json', file: 'docs/openapi.json' }],
  ['docs/modules.md', '../examples', { kind: 'folder' }],
])('converts, on the page %s, the link %s', (page, href, expected) => {
  expect(siteLink(page, href, isFolder)).toEqual(expected);
});
