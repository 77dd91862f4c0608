import { expect, test } from 'vitest';
import { evaluateMarker, type MarkerVariables, markerVariables, parseMarker } from './markers.ts';
import { parseRequirement, parseRequirements } from './requirements-file.ts';
import { parseSpecifiers, satisfies } from './version-specifiers.ts';

const path = '/srv/app/requirements.txt';
const lines = (text: string) => parseRequirements(text, path).requirements.map(({ line }) => line);
const hash = `sha256:${'0123456789abcdef'.repeat(4)}`;

test('reads comments, continued lines, extras, markers, and hashes', () => {
  const text = `\uFEFF# pip-compile
Flask_Cors [Async_IO, more]==1.0  # via app
  requests (>=2.8.1 , <3);python_version >= "3.8" and sys_platform=='linux'\r
tool==1.0 \\
    --hash=${hash} \\
    --hash ${hash}
    # via -r requirements.in

six
`;
  expect(lines(text)).toEqual([
    'Flask_Cors[Async_IO,more]==1.0',
    `requests>=2.8.1,<3 ; python_version >= "3.8" and sys_platform=='linux'`,
    `tool==1.0 --hash=${hash} --hash=${hash}`,
    'six',
  ]);
  expect(parseRequirements(text, path).requirements[0]).toMatchObject({
    ...{ name: 'flask-cors', extras: ['async-io', 'more'], shown: 'Flask_Cors[Async_IO,more]==1.0', hasHash: false },
  });
  expect(parseRequirements('--require-hashes\n', path)).toEqual({ requirements: [], requiresHashes: true });
});

test.each([
  ['-r base.txt', /^\/srv\/app\/requirements\.txt, line 2: -r is refused: put the lines of the other file/],
  ['--constraint=c.txt', /line 2: --constraint is refused/],
  ['-e .', /line 2: -e is refused: only packages of the index/],
  ['--index-url https://u:p@pip.example.org/', /line 2: --index-url is refused: declare `index_url`$/],
  ['-i https://u:p@pip.example.org/', /line 2: -i is refused: declare `index_url`$/],
  ['-ihttps-u:p@pip.example.org/', /line 2: -i is refused: declare `index_url`$/],
  ['--config-u:p', /line 2: the option --config-u is refused$/],
  ['--extra-index-url https://x', /line 2: the option --extra-index-url is refused$/],
  ['--trusted-host x', /the option --trusted-host is refused/],
  ['--pre', /the option --pre is refused/],
  ['tool --global-option=x', /the option --global-option is refused/],
  ['tool --hash=md5:00', /--hash must be sha256/],
  [`tool --hash=sha256:${'0'.repeat(96)}`, /--hash must be sha256/],
  [`tool --hash=sha384:${'0'.repeat(64)}`, /--hash must be sha256/],
  [`tool --hash=sha512:${'0'.repeat(96)}`, /--hash must be sha256/],
  ['https://u:p@example.org/tool-1.0.whl', /line 2: URLs and paths are refused: only packages of the index/],
  ['git+https://example.org/tool', /URLs and paths are refused/],
  ['tool @ file:///srv/tool', /URLs and paths are refused/],
  ['tool@https://example.org/tool.whl', /URLs and paths are refused/],
  ['./tool', /URLs and paths are refused/],
  ['/srv/tool', /URLs and paths are refused/],
  ['tool.TXZ[more] ; os_name == "posix"', /URLs and paths are refused/],
  ['tool===1.zip', /URLs and paths are refused/],
  ['tool==1+a.tar.gz', /URLs and paths are refused/],
  ['tool-1.0-py3-none-any.whl', /URLs and paths are refused/],
  ['tool==', /is not a requirement such as/],
  ['tool=1', /is not a requirement such as/],
  ['tool==1.0 other', /is not a requirement such as/],
  ['tool[a', /is not a requirement such as/],
  ['$' + '{TOOL}', /is not a requirement such as/],
  ['tool; os_release == "1"', /has a marker after ";" that is not understood/],
  ['tool; os_name == "$' + '{HOME}"', /has a marker after ";" that is not understood/],
  ['tool; os_name == "a\x1c--pre\x1c"', /has a marker after ";" that is not understood/],
  ["tool; os_name == 'a\x85--pre\x85'", /has a marker after ";" that is not understood/],
  ['tool[-a]', /is not a requirement such as/],
  ['tool[a b]', /is not a requirement such as/],
  ['tool;', /has a marker after ";" that is not understood/],
  ['pip==23', /pip itself cannot be declared/],
])('names the line with %s, and shows no password', (line, message) => {
  expect(() => parseRequirements(`six\n${line}\n`, path)).toThrow(message);
  expect(() => parseRequirements(`six\n${line}\n`, path)).not.toThrow(/u:p/);
});

test('counts the first of continued lines', () => {
  expect(() => parseRequirements(`a==1 \\\n  --hash=${hash}\n\nb \\\n==?\n`, path)).toThrow(
    /line 4: is not a requirement/,
  );
});

test('compares versions with specifiers as pip does', () => {
  const cases: [version: string, specifiers: string, isSatisfied: boolean][] = [
    ['1.0', '', true],
    ['1.0.0', '==1.0', true],
    ['1.0+cu121', '==1.0', true],
    ['1.0', '==1.0+cu121', false],
    ['1.0rc1', '==1.0', false],
    ['1.0.post1', '==1.0.*', true],
    ['1.1', '==1.0.*', false],
    ['1', '==1.0.*', true],
    ['1.0', '!=1.0.*', false],
    ['2.2.1', '~=2.2', true],
    ['3.0', '~=2.2', false],
    ['2.2.1', '~=2.2.0', true],
    ['2.3', '~=2.2.0', false],
    ['1.4.6', '~=1.4.5a4', true],
    ['1.0rc1', '<1.0', false],
    ['0.9rc1', '<1.0', true],
    ['1.0.dev1', '<1.0rc1', true],
    ['1.0.post1', '>1.0', false],
    ['1.0.post2', '>1.0.post1', true],
    ['1.0+a', '>1.0', false],
    ['1.0+a', '<=1.0', true],
    ['1.10', '>=1.9', true],
    ['1.0a1', '<1.0b1', true],
    ['1!1.0', '>2.0', true],
    ['1.0.dev1', '<1.0a1', true],
    ['1.0', '===1.0.0', false],
    ['1.5', '>=1.2, <2, !=1.5.0', false],
    [`1.${'9'.repeat(30)}`, `>1.${'9'.repeat(29)}`, true],
  ];
  for (const [version, text, isSatisfied] of cases)
    expect(satisfies(version, parseSpecifiers(text) ?? []), `${version} ${text}`).toBe(isSatisfied);
  for (const text of ['=1', '==', '1.0', '>=1.*', '~=1', '==1.0a1.*', '>=1.0+local', '==1.0,', '<<1'])
    expect(parseSpecifiers(text), text).toBeNull();
});

test('evaluates markers, and knows which ones depend on an unknown version of Python', () => {
  const known = markerVariables('3.11.2');
  const evaluate = (text: string, variables: MarkerVariables = known, extras?: ReadonlySet<string>) => {
    const marker = parseMarker(text);
    return marker === null ? 'invalid' : evaluateMarker(marker, variables, extras);
  };
  expect(evaluate('python_version < "3.9"')).toBe(false);
  expect(evaluate('python_version >= "3.9"')).toBe(true);
  expect(evaluate('"3.9" <= python_version')).toBe(true);
  expect(evaluate('python_full_version == "3.11.*"')).toBe(true);
  expect(evaluate("sys_platform == 'win32' or (os_name=='posix' and platform_system != 'Darwin')")).toBe(true);
  expect(evaluate('sys_platform == "win32" and python_version > "3"')).toBe(false);
  expect(evaluate('sys_platform in "linux darwin"')).toBe(true);
  expect(evaluate('sys_platform not in "linux darwin"')).toBe(false);
  const extras = new Set(['more-io', 'less']);
  expect(evaluate('extra == "More_IO"', known, extras)).toBe(true);
  expect(evaluate('"most" == extra', known, extras)).toBe(false);
  expect(evaluate('extra != "less"', known, extras)).toBe(false);
  expect(evaluate('extra == "more-io"')).toBe(false);
  expect(evaluate('extra == ""')).toBe(true);
  const unknown = markerVariables(null);
  expect(evaluate('python_version < "3.9"', unknown)).toBeNull();
  expect(evaluate('python_version < "3.9" and sys_platform == "win32"', unknown)).toBe(false);
  expect(evaluate('python_version < "3.9" or sys_platform == "linux"', unknown)).toBe(true);
  for (const text of [
    '',
    'os_name',
    'os_name ==',
    'os_name == posix',
    'x == "1"',
    '(os_name == "a"',
    'os_name == "a" or',
  ])
    expect(evaluate(text), text).toBe('invalid');
  expect(evaluate(`${'('.repeat(10_000)}os_name == "a"`)).toBe('invalid');
});

test('reads hostile lines in linear time', () => {
  const started = process.cpuUsage();
  for (const line of [
    `a${'-'.repeat(500_000)}!`,
    `a${' '.repeat(500_000)}!`,
    `a==${'1.'.repeat(250_000)}`,
    `a[${','.repeat(500_000)}`,
    `a${' --h'.repeat(100_000)}`,
    `a; ${'os_name == "a" or '.repeat(20_000)}`,
    `a${'@'.repeat(3000)}`,
  ])
    expect(typeof parseRequirement(line), line.slice(0, 10)).toBe('string');
  expect(parseRequirements(`\\\n`.repeat(500_000), path).requirements).toEqual([]);
  expect(parseRequirements('\n'.repeat(2_000_000), path).requirements).toEqual([]);
  const { user, system } = process.cpuUsage(started);
  expect(user + system).toBeLessThan(5_000_000);
});
