import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const h = useAgent();
const named = (name: string, module = 'site') => file(`${h.root}/${name}`, {}, { module });
const removed = async () =>
  (await h.agent.run(operation('apply', []))).results.map(({ identity }) => identity.slice(h.root.length + 1));

describe('removals run in the reverse order of the declaration', () => {
  test('removes resources in reverse order after some removals failed', async () => {
    const all = ['a', 'b', 'c'].map((name) => named(name));
    await h.agent.run(operation('apply', all));
    rmSync(`${h.root}/b`);
    mkdirSync(`${h.root}/b`);
    expect((await h.agent.run(operation('apply', all))).finished.status).toBe('failed');
    rmdirSync(`${h.root}/b`);
    expect(await removed()).toEqual(['c', 'b', 'a']);
  });

  test('removes resources in reverse order after an apply in which a removal failed', async () => {
    const [a, c] = [named('a'), named('c')];
    const stays = script('s', { apply: 'true', undo: `test ! -e ${h.root}/busy` });
    await h.agent.run(operation('apply', [a, stays, c]));
    writeFileSync(`${h.root}/busy`, '');
    const { results } = await h.agent.run(operation('apply', [a, c]));
    expect(results.at(-1)).toMatchObject({ identity: 's', status: 'failed' });
    rmSync(`${h.root}/busy`);
    const removed = (await h.agent.run(operation('apply', []))).results;
    expect(removed.map(({ identity }) => identity)).toEqual([c.identity, 's', a.identity]);
  });

  test('removes resources in reverse order after one module was applied again without the other', async () => {
    const under = named('a', 'under');
    await h.agent.run(operation('apply', [under, named('b', 'over')]));
    await h.agent.run(operation('apply', [under], { keep_modules: ['over'] }));
    expect(await removed()).toEqual(['b', 'a']);
  });

  test('removes resources in the reverse order of the last declaration', async () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => named(name)) as [never, never, never, never];
    await h.agent.run(operation('apply', [a, b, c]));
    await h.agent.run(operation('apply', [b, d, a, c]));
    await h.restart();
    expect(await removed()).toEqual(['c', 'a', 'd', 'b']);
  });
});
