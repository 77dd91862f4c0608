import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { HostFailure } from '../host/failure.ts';
import type { Machine, Provider } from '../resources/provider/provider.ts';
import { block, file, operation } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const fault = vi.hoisted(() => ({ member: null as string | null, waits: false, isWaiting: false }));

// A real kind with a bug in the method that each test chooses.
vi.mock('../resources/block-unix/block-unix.ts', async (original) => {
  const { blockUnix } = await original<{ blockUnix: Record<string, unknown> }>();
  const faulty = Object.entries(blockUnix).map(([name, member]) => [
    name,
    typeof member !== 'function'
      ? member
      : (...args: unknown[]) => {
          if (fault.member === name) throw new TypeError('of no use');
          if (name === 'observe' && fault.waits) return failWhenStopped(args[2] as Machine);
          return member.apply(blockUnix, args);
        },
  ]);
  return {
    blockUnix: {
      watched: () => {
        if (fault.member === 'watched') throw new TypeError('of no use');
        return [];
      },
      ...Object.fromEntries(faulty),
    },
  };
});

/** Fails when the agent stops, as an observation does that waits for a lock. */
async function failWhenStopped({ stop }: Pick<Machine, 'stop'>): Promise<never> {
  fault.isWaiting = true;
  await new Promise((resolve) => stop.addEventListener('abort', resolve));
  throw new HostFailure('the agent is stopping');
}

const h = useAgent();
const members = [
  'brings',
  'path',
  'watched',
  'check',
  'observe',
  'diff',
  'inBrief',
  'revealsCompletion',
  'weight',
  'remember',
  'apply',
  'observeForRemoval',
  'diffRemoval',
  'remove',
] as const satisfies readonly (keyof Provider)[];
/** Methods in which a bug does not fail the resource. */
const harmless = new Set(['weight', 'revealsCompletion']);

describe('a bug in the code of one kind', () => {
  test.each(members)('fails only resources of a kind with a bug in %s', async (member) => {
    writeFileSync(`${h.root}/text`, 'theirs\n');
    const declared = block(`${h.root}/text`, 'm', { content: 'ours\n' });
    const desired = [file(`${h.root}/a`), declared, file(`${h.root}/b`)];
    const statusOf = async (kind: 'plan' | 'apply', resources: typeof desired) => {
      const { results, finished } = await h.agent.run(operation(kind, resources));
      expect(finished.error ?? '').not.toContain('could not execute the operation');
      expect(results).toHaveLength(3);
      for (const { type, status } of results)
        if (type !== 'block-unix') expect(status).toMatch(/^(changed|would_change|unchanged)$/);
      return results.find(({ type }) => type === 'block-unix');
    };
    fault.member = member;
    try {
      const ofRemoval = /emov/.test(member);
      const applies = ofRemoval || harmless.has(member);
      await statusOf('plan', desired);
      const applied = await statusOf('apply', desired);
      expect(applied?.status).toBe(applies ? 'changed' : 'failed');
      if (!applies) expect(applied?.message).toContain('please report it: TypeError: of no use');
      expect(existsSync(`${h.root}/b`)).toBe(true);
      expect(readFileSync(`${h.root}/text`, 'utf8').includes('ours')).toBe(applies);
      h.agent.engine.applied();
      fault.member = null;
      expect((await statusOf('apply', desired))?.status).toBe(applies ? 'unchanged' : 'changed');
      fault.member = member;
      h.agent.engine.applied();
      const drift = await h.agent.run(operation('drift', []));
      expect(drift.finished.error ?? '').not.toContain('could not execute the operation');
      const removed = await statusOf('apply', []);
      const isCalled = ofRemoval || ['path', 'watched', 'brings', 'check'].includes(member);
      expect(removed?.status).toBe(isCalled ? 'failed' : 'changed');
      expect(existsSync(`${h.root}/a`)).toBe(false);
    } finally {
      fault.member = null;
    }
    await h.agent.run(operation('apply', []));
    expect(readFileSync(`${h.root}/text`, 'utf8')).toBe('theirs\n');
  });

  test('fails an unchanged resource if a method has a bug', async () => {
    writeFileSync(`${h.root}/text`, 'theirs\n');
    const declared = block(`${h.root}/text`, 'm', { content: 'ours\n' });
    await h.agent.run(operation('apply', [declared]));
    const text = readFileSync(`${h.root}/text`);
    await h.agent.run(operation('apply', []));
    writeFileSync(`${h.root}/text`, text);
    fault.member = 'claim';
    const { results } = await h.agent.run(operation('apply', [declared, file(`${h.root}/b`)]));
    fault.member = null;
    expect(results.map(({ status }) => status)).toEqual(['failed', 'changed']);
  });
});

test('repeats a plan if the stop of the agent makes its last observation fail', async () => {
  writeFileSync(`${h.root}/text`, 'theirs\n');
  const declared = operation('plan', [block(`${h.root}/text`, 'm', { content: 'ours\n' })]);
  fault.waits = true;
  await h.agent.engine.accept(declared);
  await expect.poll(() => fault.isWaiting).toBe(true);
  fault.waits = false;
  await h.restart();
  expect((await h.agent.ended(declared.operation_id)).results).toMatchObject([{ status: 'would_change' }]);
});
