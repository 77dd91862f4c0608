import { type Assignment, listAssignments, listWindows, type Window } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { assignmentsOf, modulesOf, modulesSince, nextWindow } from './assigned.ts';

const [base] = listAssignments.example.answer as never as [Assignment];
const [open] = listWindows.example.answer as never as [Window];
const agent = { tags: { role: 'web' }, attributes: { platform: 'linux' } };
const named = (name: string, part: Partial<Assignment> = {}): Assignment => ({ ...base, name, ...part });

test('finds assignments by tag and attribute, but not by an empty or an invalid selector', () => {
  const all = [
    named('a', { selector: 'role=web' }),
    named('b', { selector: 'role=db' }),
    named('c', { selector: 'attr.platform=linux' }),
    named('d', { selector: '' }),
    named('e', { selector: '=' }),
  ];
  expect(assignmentsOf(agent, all).map(({ name }) => name)).toEqual(['a', 'c']);
});

test('lists each module once, and omits the modules of audit assignments', () => {
  const all = [named('a', { modules: ['x', 'y'] }), named('b', { modules: ['y', 'z'] })];
  expect(modulesOf([...all, named('c', { modules: ['q'], mode: 'audit' })])).toEqual(['x', 'y', 'z']);
});

test('finds the maintenance window that ends or begins next for the agent', () => {
  const window = (starts_at: number, part: Partial<Window> = {}): Window => ({
    ...open,
    ...{ id: `${starts_at}`, starts_at, ends_at: starts_at + 10, selector: null },
    ...part,
  });
  const all = [window(300), window(200), window(150, { selector: 'role=db' }), window(10)];
  expect(nextWindow(agent, all, 100)?.id).toBe('200');
  expect(nextWindow(agent, all, 205)?.id).toBe('200');
  expect(nextWindow(agent, all, 400)).toBeNull();
});

test('finds modules that were assigned or uploaded after the last apply', () => {
  const applied = { modules: ['a', 'b'], created_at: 100 };
  const stored = ['a', 'b', 'c'].map((name, index) => ({ name, uploaded_at: index === 1 ? 101 : 99 }));
  expect(modulesSince(applied, ['a', 'b', 'c'], stored)).toEqual(['b', 'c']);
});
