import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentValue } from '@muster/protocol/http';
import { expect } from 'vitest';
import { describeAnyDatabase } from './any-database.ts';
import { test } from './harness.ts';
import { musterAt } from './person.ts';

describeAnyDatabase('values', (startWith) => {
  test('values of three assignments are merged, shown with their origin, and applied', async ({ stage }) => {
    const orchestrator = await startWith(stage);
    const { run, muster } = musterAt(stage, orchestrator);
    const write = (name: string, text: string) => {
      writeFileSync(join(stage.dir, name), text);
      return join(stage.dir, name);
    };
    await stage.agent(orchestrator, 'web-1');
    await muster('tags', 'set', 'web-1', 'site=paris');

    const conf = join(stage.dir, 'resolv.conf');
    const resolver = `name: resolver
supports: [{ platform: linux }]
parameters:
  servers: { type: list, merge: unique, items: { type: string, pattern: '^[0-9.]+$' }, default: [10.0.0.9] }
  options: { type: map, merge: deep, default: { timeout: 5, attempts: 2 } }
  search: { type: string, default: none }
require:
  - { that: "size(param.servers) <= 4", message: "the resolver reads at most 4 servers: remove some" }
resources:
  - id: conf
    resource:
      file-unix:
        path: ${conf}
        content: "\${{ param.servers | join(' ') }} \${{ param.options | json }} \${{ param.search }}\\n"
`;
    await muster('modules', 'upload', write('resolver.yml', resolver));
    const site =
      'name: office\nsupports: [{ platform: linux }]\nrequires: [{ module: resolver, with: { search: office.example } }]\n';
    await muster('modules', 'upload', write('office.yml', site));
    const assign = (name: string, selector: string, values: object, ...more: string[]) =>
      muster(
        ...['assignments', 'create', name, '--selector', selector],
        ...['--parameters', write(`${name}.json`, JSON.stringify({ resolver: values })), ...more],
      );
    await muster('assignments', 'create', 'offices', '-m', 'office', '--selector', 'attr.platform=linux');
    await assign('all', 'attr.platform=linux', { servers: ['10.0.0.1'], options: { timeout: 3 } });
    await assign(
      'paris',
      'site=paris',
      { servers: ['10.1.0.1', '10.0.0.1'], options: { rotate: true } },
      '--precedence',
      '10',
    );
    await assign('trial', 'site=paris', { options: { timeout: 1, attempts: null } }, '--precedence', '20');
    await assign('rome', 'site=rome', { servers: ['10.2.0.1'], search: 'rome.example' }, '--precedence', '30');

    const values = JSON.parse(await muster('agents', 'values', 'web-1', '--json')) as AgentValue[];
    const brief = values.map(({ parameter, value, layers, overrode }) => [
      parameter,
      value,
      layers.map(({ from, name }) => name ?? from),
      overrode.map(({ from, name }) => name ?? from),
    ]);
    expect(brief).toEqual([
      ['servers', ['10.0.0.9', '10.0.0.1', '10.1.0.1'], ['paris', 'all', 'default'], []],
      ['options', { timeout: 1, rotate: true }, ['trial', 'paris'], ['all', 'default']],
      ['search', 'office.example', ['office'], ['default']],
    ]);
    expect(await muster('agents', 'values', 'web-1')).toContain('search: "office.example"  required by module office');

    // A trial has the values of the agent's assignments, also for a changed file, and for a module required by another.
    const changed = write(
      'changed.yml',
      resolver
        .replace('json }} ', 'json }} search ')
        .replace('search: { type', 'other: { type: string, default: x }\n  search: { type'),
    );
    const shown = await muster('modules', 'resolve', changed, '--agent', 'web-1');
    expect(shown).toContain('10.0.0.9 10.0.0.1 10.1.0.1 {"timeout":1,"rotate":true} search office.example\n');
    expect(shown).toContain('from param.options (assignment trial), param.search (required by module office)');
    const tried = JSON.parse(await muster('modules', 'resolve', changed, '--agent', 'web-1', '--json'));
    expect(tried.parameters.resolver).toMatchObject({
      servers: { from: 'assignment', name: 'paris' },
      options: { from: 'assignment', name: 'trial' },
      search: { from: 'requires', name: 'office' },
      other: { from: 'default', name: null },
    });
    const evaluate = (...args: string[]) =>
      muster('modules', 'eval', '--agent', 'web-1', '--module', 'resolver', ...args);
    expect((await evaluate('param.search')).trim()).toBe('office.example');
    const given = write('given.yml', 'search: home.example\n');
    expect((await evaluate('param.search', '--parameters', given)).trim()).toBe('home.example');

    await muster('apply', 'web-1', '--yes');
    expect(readFileSync(conf, 'utf8')).toBe('10.0.0.9 10.0.0.1 10.1.0.1 {"timeout":1,"rotate":true} office.example\n');

    // An assignment that only sets values can be applied to its agents.
    await muster(
      ...['assignments', 'update', 'trial', '--parameters'],
      write('trial.json', '{"resolver": {"options": {"timeout": 2}}}'),
    );
    await muster('assignments', 'apply', 'trial', '--yes');
    expect(readFileSync(conf, 'utf8')).toContain('{"timeout":2,"attempts":2,"rotate":true}');

    // A condition on the merged value is evaluated only for a specific agent.
    await assign('more', 'site=paris', { servers: ['10.3.0.1', '10.3.0.2'] });
    const refused = await run('apply', 'web-1', '--yes');
    expect(refused.exit).not.toBe(0);
    expect(refused.stderr).toContain('the resolver reads at most 4 servers: remove some');
    const invalid = write('invalid.json', JSON.stringify({ resolver: { servers: ['dns.example'] } }));
    const faulty = await run('assignments', 'update', 'more', '--parameters', invalid);
    expect(faulty.stderr).toContain('module "resolver": parameter servers[0]: must match the pattern ^[0-9.]+$');
  });
});
