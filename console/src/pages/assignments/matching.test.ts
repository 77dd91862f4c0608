import type { Agent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { matching } from './matching.ts';

const agent = (name: string, status: Agent['status'], role: string): Agent =>
  ({ name, status, tags: { role }, attributes: { distro: 'debian' } }) as unknown as Agent;
const agents = [agent('web-1', 'approved', 'web'), agent('db-1', 'approved', 'db'), agent('new', 'pending', 'web')];
const names = (selector: string) => matching(selector, agents)?.map(({ name }) => name) ?? null;

test('returns approved agents that match, no agents for an empty selector, and null for an invalid one', () => {
  expect(names('role=web')).toEqual(['web-1']);
  expect(names('attr.distro=debian')).toEqual(['web-1', 'db-1']);
  expect(names('')).toEqual([]);
  expect(names('role=')).toBeNull();
});
