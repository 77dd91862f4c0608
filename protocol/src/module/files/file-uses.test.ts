import { expect, test } from 'vitest';
import { parseModule, templateFilesOf } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import { filePathFault, type ModuleFile } from './module-file.ts';

const source = (template: string) =>
  `name: m\nsupports: [{ platform: linux }]\nresources:\n  - resource: { file-unix: { path: /a, template: ${template} } }\n`;
const folder = (texts: Record<string, string | null>) => ({
  files: new Map(
    Object.keys(texts).map((path): [string, ModuleFile] => [path, { path, sha256: '', size: 3, executable: false }]),
  ),
  textOf: (path: string) => texts[path] ?? null,
});
const messages = (text: string, texts: Record<string, string | null>) => {
  const parsed = parseModule(text, folder(texts));
  return [...(parsed.ok ? [] : parsed.faults), ...parsed.warnings].map(({ message, line }) => `${line}: ${message}`);
};

test('resolves a template from a file', () => {
  const parsed = parseModule(source('files/a.conf'), folder({ 'files/a.conf': 'name ${{ agent.name }}' }));
  if (!parsed.ok) throw new Error(parsed.faults[0]?.message);
  const agent = { id: 'x', name: 'web-1', hostname: 'h', attributes: { platform: 'linux' }, tags: {} };
  const resolved = resolveDesiredSet({ modules: [parsed.module], agent: agent as never });
  expect(resolved.ok && resolved.resources[0]?.body).toEqual({ path: '/a', content: 'name web-1' });
});

test('prefers a template of the module with the same ID', () => {
  const text = `${source('x')}templates: [{ id: x, content: mine }]\n`;
  const parsed = parseModule(text, folder({ x: 'file' }));
  expect(parsed.ok && parsed.module.templates.map(({ content }) => content)).toEqual(['mine']);
  expect(templateFilesOf(text, folder({ x: '' }).files)).toEqual([]);
});

test('reports a missing file, an error in a file with its line, and a file that is not text', () => {
  expect(messages(source('files/b'), { 'files/a': '' })).toContain('4: there is no template "files/b"');
  expect(messages(source('files/a'), { 'files/a': 'x\n${{ param.none }}' })[0]).toMatch(/^4: files\/a:2: /);
  expect(messages(source('files/a'), { 'files/a': null })[0]).toContain('cannot be a template');
});

test('warns about unused files, except for tests', () => {
  expect(messages(source('files/a'), { 'files/a': '', 'files/b': '', 'tests/c.yml': '' })).toEqual([
    '1: no resource uses the file "files/b"',
  ]);
});

test('accepts relative paths only in their canonical spelling', () => {
  expect(filePathFault('files/sub dir/ä.conf')).toBeUndefined();
  for (const path of ['', '/a', 'a/', 'a//b', './a', '../a', 'a/..', 'a\\b', 'a\nb', 'e\u0301', '\ud800'])
    expect(filePathFault(path), path).toBeDefined();
});
