import { expect, test } from 'vitest';
import { faultsOf, nameFrom, namesFor } from './naming.ts';

const waiting = (hostnames: string[]) =>
  hostnames.map((initial_hostname, index) => ({ node_id: `${index}`.repeat(32), name: null, initial_hostname }));
const given = (hostnames: string[], taken: string[] = []) => [...namesFor(waiting(hostnames), new Set(taken)).values()];

test.each([
  ['web-1', 'web-1'],
  ['web-1.example.net', 'web-1'],
  ['10.0.0.1', null],
  ['9lives', 'lives'],
  ['<script>alert(1)</script>', 'script-alert-1-script'],
  ['\u202Eevil', 'evil'],
  ['', null],
  ['a'.repeat(70_000), 'a'.repeat(60)],
  ['0123456789abcdef0123456789abcdef', 'abcdef0123456789abcdef'],
  ['bücher', 'bücher'],
])('derives a name from the hostname %j', (hostname, name) => {
  expect(nameFrom(hostname)).toBe(name);
});

test('suggests unique names that are not taken', () => {
  expect(given(['web', 'web', 'WEB', 'db'], ['db', 'web-2'])).toEqual(['web', 'web-3', 'WEB-4', 'db-2']);
});

test('uses the node id if the hostname yields no name', () => {
  expect(given(['…', '10.0.0.1'])).toEqual(['agent-000000', 'agent-111111']);
});

test('suggests an agent’s current name if it has one', () => {
  const agents = [{ node_id: 'x', name: 'web-1', initial_hostname: 'other' }];
  expect(namesFor(agents, new Set()).get('x')).toBe('web-1');
});

test('reports duplicate, taken, and invalid names', () => {
  const names = new Map([
    ['a', 'web'],
    ['b', 'web'],
    ['c', 'taken'],
    ['d', '1x'],
    ['e', 'fine'],
  ]);
  expect([...faultsOf(names, new Set(['taken'])).keys()]).toEqual(['b', 'c', 'd']);
});
