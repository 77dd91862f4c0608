import { type Agent, listAgents } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { terminalOptions } from './terminal-options.ts';

const [example] = listAgents.example.answer as never as [Agent];
const agent = (name: string, remote_terminal: string | null, part: Partial<Agent> = {}): Agent => ({
  ...{ ...example, name, status: 'approved', connected: true },
  attributes: remote_terminal === null ? {} : { remote_terminal },
  ...part,
});

test('lists agents with terminals first, in natural order, and states why the others have none', () => {
  const agents = [
    agent('web-10', 'true'),
    agent('old-1', null),
    agent('web-3', 'false'),
    agent('web-2', 'true'),
    agent('web-1', 'true', { connected: false }),
    agent('new', 'true', { status: 'pending' }),
  ];
  expect(terminalOptions(agents)).toEqual([
    { value: 'web-2', label: 'web-2' },
    { value: 'web-10', label: 'web-10' },
    { value: 'old-1', label: 'old-1', detail: 'earlier release, may have no terminals' },
    { value: 'web-1', label: 'web-1', detail: 'offline', disabled: true },
    { value: 'web-3', label: 'web-3', detail: 'terminals disabled', disabled: true },
  ]);
});
