import { expect, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { runEngine } from './engine.ts';

test('passes every variable to the program, also one that `read` of the shell would set', async () => {
  const runner = { clock: systemClock, startedProcess: () => {} };
  const run = {
    args: [],
    script: 'env',
    environment: { REPLY: 'horse', MODE: 'a' },
    timeLimit: 60_000,
    doing: 'test',
    warn: () => {},
  };
  const lines = (await runEngine('podman', run, runner)).split('\n');
  expect(lines).toEqual(expect.arrayContaining(['REPLY=horse', 'MODE=a']));
});
