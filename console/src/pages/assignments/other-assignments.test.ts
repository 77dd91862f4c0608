import { type Agent, type Assignment, getAgent, getAssignment } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { otherAssignments } from './other-assignments.ts';

const agent = { ...(getAgent.example.answer as never as Agent), tags: { role: 'web', site: 'paris' } };
const assignment = (name: string, selector: string, mode: Assignment['mode'] = 'enforce'): Assignment => ({
  ...(getAssignment.example.answer as never as Assignment),
  ...{ name, selector, mode },
});

test('finds the other assignments that an apply to the agents includes', () => {
  const assignments = [
    assignment('audited', 'role=web', 'audit'),
    assignment('base', 'site in (paris,berlin)'),
    assignment('databases', 'role=db'),
    assignment('everywhere', ''),
    { ...assignment('values', 'role=web'), modules: [] },
    assignment('web', 'role=web'),
  ];
  expect(otherAssignments('web', assignments, [agent]).map(({ name }) => name)).toEqual(['base']);
});
