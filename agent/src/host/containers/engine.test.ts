import { expect, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { idsIn, runEngine } from './engine.ts';

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

test('refuses a list with a name that it does not understand, instead of omitting it', () => {
  expect(idsIn('shop_b\n\n shop_a\nshop_b\n', 'podman', 'network')).toEqual(['shop_a', 'shop_b']);
  for (const name of ['--force', 'a b', '/etc'])
    expect(() => idsIn(`shop_a\n${name}\n`, 'podman', 'network')).toThrow(
      `podman has a network with a name that the agent does not understand: ${JSON.stringify(name)}`,
    );
});
