import { type Agent, type Assignment, listAgents, listAssignments } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { agentsOf, enforcing, rolloutOf } from './rollout.ts';

const [exampleAgent] = listAgents.example.answer as never as [Agent];
const [exampleAssignment] = listAssignments.example.answer as never as [Assignment];
const agent = (name: string, role: string): Agent => ({
  ...{ ...exampleAgent, node_id: name, name, tags: { role } },
  status: 'approved',
});
const assignment = (name: string, selector: string, more: Partial<Assignment> = {}): Assignment => ({
  ...{ ...exampleAssignment, name, selector, modules: ['nginx'], mode: 'enforce' },
  ...more,
});
const agents = [agent('web-2', 'web'), agent('web-1', 'web'), agent('db-1', 'db')];
const namesOf = (found: readonly Agent[]) => found.map(({ name }) => name);

test('omits assignments that audit a module or only set its values', () => {
  const assignments = [
    assignment('web', 'role=web'),
    assignment('audit', 'role=web', { mode: 'audit' }),
    assignment('values', 'role=web', { modules: [] }),
  ];
  expect(enforcing(assignments, 'nginx').map(({ name }) => name)).toEqual(['web']);
});

test('lists an agent that several assignments match once', () => {
  const assignments = [assignment('web', 'role=web'), assignment('all', 'role in (web, db)')];
  expect(namesOf(agentsOf(assignments, agents))).toEqual(['web-1', 'web-2', 'db-1']);
});

test('rolls out a single assignment by name, and several assignments in one run on their agents', () => {
  const web = assignment('web', 'role=web');
  expect(rolloutOf([web], agents)).toEqual({ kind: 'assignment', name: 'web' });
  expect(rolloutOf([web, assignment('db', 'role=db')], agents)).toEqual({
    ...{ kind: 'agents', node_ids: ['web-1', 'web-2', 'db-1'], modules: [] },
  });
});
