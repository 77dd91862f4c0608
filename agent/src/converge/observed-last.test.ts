import { existsSync, writeFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { block, file, operation } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const state = vi.hoisted(() => ({ look: (): void => {}, readsAll: false }));

// A real kind that may depend on any file.
vi.mock('../resources/block-unix/block-unix.ts', async (original) => {
  const { blockUnix } = await original<{ blockUnix: { observe(...args: unknown[]): unknown } }>();
  return {
    blockUnix: {
      ...blockUnix,
      reads: () => (state.readsAll ? ['/'] : []),
      observe: (...args: unknown[]) => {
        state.look();
        return blockUnix.observe(...args);
      },
    },
  };
});

const h = useAgent();

test.each([true, false])(
  'observes a resource after all earlier ones only if it may read any file: %s',
  async (readsAll) => {
    state.readsAll = readsAll;
    writeFileSync(`${h.root}/text`, 'theirs\n');
    const seen: boolean[] = [];
    state.look = () => void seen.push(existsSync(`${h.root}/a`));
    const desired = [file(`${h.root}/a`), block(`${h.root}/text`, 'm', { content: 'ours\n' }), file(`${h.root}/b`)];
    const { results } = await h.agent.run(operation('apply', desired));
    expect(results.map(({ status }) => status)).toEqual(['changed', 'changed', 'changed']);
    expect(seen[0]).toBe(readsAll);
  },
);
