import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wrongImports } from './boundaries.ts';
import { importsOf } from './imports.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'muster-arrows-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const write = (path: string, text: string) => {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const faultsOf = (path: string, ...imports: string[]) => {
  write(path, imports.map((specifier) => `import '${specifier}';\n`).join(''));
  return wrongImports(root);
};

describe('importsOf', () => {
  test('finds every kind of module reference, with its line', () => {
    const text = [
      "import { a } from './a.ts';",
      "import type { B } from './b.ts';",
      "export * from './c.ts';",
      "export type { D } from './d.ts';",
      'type E = import("./e.ts").E;',
      "const f = await import('./f.ts');",
      "new Worker(new URL('./g.ts', import.meta.url));",
      'const name: E = a;',
      "const plain = './h.ts';",
    ].join('\n');
    expect(importsOf('x.ts', text)).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name, index) => ({ specifier: `./${name}.ts`, line: index + 1 })),
    );
  });

  test('refuses source code that does not parse', () => {
    expect(() => importsOf('x.ts', 'import {')).toThrow('x.ts does not parse');
  });
});

describe('allows the import', () => {
  test.each([
    ['orchestrator/src/http/routes/agents.ts', '../../domain/agents.ts'],
    ['orchestrator/src/domain/agents.ts', '../store/agents.ts'],
    ['orchestrator/src/domain/agents.ts', '../bus/bus.ts'],
    ['orchestrator/src/gateway/link.ts', '../bus/bus.ts'],
    ['orchestrator/src/store/agents.ts', 'kysely'],
    ['orchestrator/src/http/app.ts', '../request-fields.ts'],
    ['orchestrator/src/version.ts', '../package.json'],
    ['orchestrator/src/compose/store.ts', '../store/agents.ts'],
    ['orchestrator/src/main.ts', './compose/start.ts'],
    ['orchestrator/src/http/app.ts', '../config/schema.ts'],
    ['cli/src/main.ts', './program/program.ts'],
    ['cli/src/verbs/agents/agents.ts', '../../execution/each.ts'],
    ['cli/src/context/connect.ts', '../transport/client.ts'],
    ['cli/src/text/style.ts', '../directories.ts'],
    ['orchestrator/src/domain/agents.ts', '@muster/protocol/wire'],
    ['orchestrator/src/store/unit.test.ts', '../domain/agents.ts'],
    ['agent/src/connection/link.ts', '../converge/engine.ts'],
    ['agent/src/converge/execute.ts', '../resources/registry.ts'],
    ['agent/src/resources/file.ts', '../host/atomic-write.ts'],
    ['agent/src/host/run-command.ts', 'node:child_process'],
    ['agent/src/journal/journal.ts', 'node:fs'],
    ['agent/src/journal/state.ts', '../resources/provider.ts'],
    ['agent/src/converge/plan.test.ts', 'node:fs'],
    ['protocol/src/module/parse.ts', 'yaml'],
    ['protocol/src/module/parse.ts', 'zod/v4'],
    ['protocol/src/module/parse.test.ts', 'fast-check'],
    ['e2e/harness.ts', '../agent/src/host/run-command.ts'],
    ['bench/src/writes.ts', 'better-sqlite3'],
    ['cli/src/agents.ts', '@muster/protocol/client'],
    ['console/src/main.tsx', './app/routes.tsx'],
    ['console/src/app/routes.tsx', '../pages/agents/agents-page.tsx'],
    ['console/src/pages/agents/agents-page.tsx', '../../api/agents.ts'],
    ['console/src/pages/agents/agents-page.tsx', '../../charts/chart.tsx'],
    ['console/src/charts/chart.tsx', '../parts/time.tsx'],
    ['console/src/api/agents.ts', '@muster/protocol/http'],
    ['agent/src/host/files/watch-file.ts', '../../../../lib/src/clock.ts'],
    ['agent/src/host/files/watch-file.test.ts', '../../../../lib/test/manual-clock.ts'],
    ['e2e/metrics.ts', '../lib/test/manual-clock.ts'],
    ['console/src/parts/text.test.ts', '../../../protocol/test/code-point.ts'],
    ['orchestrator/test/bad-input.ts', '../../protocol/test/code-point.ts'],
    ['bench/src/fuzz/inputs.ts', '../../../protocol/test/code-point.ts'],
    ['lib/src/private-file.ts', 'node:fs'],
    ['lib/src/service-manager.ts', './clock.ts'],
    ['console/src/api/live.ts', '../../../client/src/event-frames.ts'],
    ['client/src/event-frames.ts', 'eventsource-parser'],
    ['client/src/event-frames.ts', '@muster/protocol/http'],
  ])('allows %s to import %s', (from, specifier) => {
    expect(faultsOf(from, specifier)).toEqual([]);
  });
});

describe('refuses the import', () => {
  test.each([
    ['orchestrator/src/store/agents.ts', '../domain/agents.ts', 'orchestrator/store → orchestrator/domain'],
    ['orchestrator/src/bus/bus.ts', '../store/agents.ts', 'orchestrator/bus → orchestrator/store'],
    ['orchestrator/src/domain/agents.ts', '../http/app.ts', 'orchestrator/domain → orchestrator/http'],
    ['orchestrator/src/domain/agents.ts', '../gateway/link.ts', 'orchestrator/domain → orchestrator/gateway'],
    ['orchestrator/src/http/app.ts', '../store/agents.ts', 'orchestrator/http → orchestrator/store'],
    ['orchestrator/src/http/app.ts', '../gateway/link.ts', 'orchestrator/http → orchestrator/gateway'],
    ['orchestrator/src/http/app.ts', '../compose/start.ts', 'it wires the parts'],
    ['orchestrator/src/config/schema.ts', '../http/app.ts', 'this file serves every layer'],
    ['cli/src/text/style.ts', '../context/output.ts', 'cli/text → cli/context'],
    ['cli/src/context/output.ts', '../execution/each.ts', 'cli/context → cli/execution'],
    ['cli/src/execution/each.ts', '../verbs/agents/agents.ts', 'cli/execution → cli/verbs'],
    ['cli/src/verbs/agents/agents.ts', '../../program/run.ts', 'cli/verbs → cli/program'],
    ['cli/src/exit.ts', './context/output.ts', 'this file serves every layer'],
    ['orchestrator/src/request-fields.ts', './domain/agents.ts', 'this file serves every layer'],
    ['orchestrator/src/domain/agents.ts', 'kysely', 'orchestrator/domain → kysely'],
    ['orchestrator/src/compose/store.ts', 'better-sqlite3', 'only the store may contain queries'],
    ['orchestrator/src/terminals/x.ts', '../store/agents.ts', 'the folder terminals has no rule'],
    ['orchestrator/src/domain/agents.ts', './agents.test.ts', 'test code'],
    ['orchestrator/src/domain/agents.ts', '../../test/fixture.ts', 'test code'],
    ['agent/src/host/clock.ts', '../resources/file.ts', 'agent/host → agent/resources'],
    ['agent/src/resources/file.ts', '../converge/plan.ts', 'agent/resources → agent/converge'],
    ['agent/src/converge/engine.ts', '../connection/link.ts', 'agent/converge → agent/connection'],
    ['agent/src/resources/script.ts', 'node:child_process', 'agent/resources → node:child_process'],
    ['agent/src/journal/journal.ts', 'node:child_process', 'agent/journal → node:child_process'],
    ['agent/src/resources/file.ts', '../journal/journal.ts', 'agent/resources → agent/journal'],
    ['agent/src/connection/key.ts', 'node:fs/promises', 'only host may access the operating system'],
    ['protocol/src/module/parse.ts', 'node:fs', 'protocol → node:fs'],
    ['protocol/src/module/parse.ts', 'pino', 'protocol → pino'],
    ['protocol/src/module/parse.ts', '../../../agent/src/host/clock.ts', 'protocol → agent/src/host/clock.ts'],
    ['cli/src/agents.ts', '@muster/agent', 'the apps never import each other'],
    ['agent/src/main.ts', '../../orchestrator/src/main.ts', 'the apps never import each other'],
    ['agent/src/main.test.ts', '../../orchestrator/src/main.ts', 'the apps never import each other'],
    ['orchestrator/src/domain/x.ts', '../../../protocol/src/errors.ts', "by name, '@muster/protocol'"],
    ['orchestrator/src/domain/x.ts', '../../../e2e/harness.ts', 'the apps never import each other'],
    ['tools/start.ts', '../cli/src/profile.ts', 'run it as a program'],
    ['console/src/parts/table.tsx', '../api/agents.ts', 'console/parts → console/api'],
    ['console/src/parts/table.tsx', '../app/routes.tsx', 'console/parts → console/app'],
    ['console/src/api/agents.ts', '../parts/time.tsx', 'console/api → console/parts'],
    ['console/src/terminal/screen.tsx', '../api/terminals.ts', 'console/terminal → console/api'],
    ['console/src/pages/agents/agents-page.tsx', '../../app/shell.tsx', 'console/pages → console/app'],
    ['console/src/api/agents.ts', '../../../protocol/src/http/index.ts', "by name, '@muster/protocol'"],
    ['console/src/api/agents.ts', '../../../cli/src/client.ts', 'the apps never import each other'],
    ['agent/src/host/x.ts', '../../../lib/test/manual-clock.ts', 'test code'],
    ['agent/src/host/x.ts', '../../../protocol/test/code-point.ts', 'import the protocol by name'],
    ['agent/src/host/x.test.ts', '../../../protocol/src/errors.ts', 'import the protocol by name'],
    ['agent/src/connection/x.ts', '../../../client/src/event-frames.ts', 'only cli, console, e2e, bench import client'],
    ['console/src/api/agents.ts', '../../../lib/src/clock.ts', 'only orchestrator, agent, cli, e2e, bench import lib'],
    ['protocol/src/module/parse.ts', '../../../lib/src/clock.ts', 'protocol → lib/src/clock.ts'],
    ['lib/src/clock.ts', '../../agent/src/main.ts', 'lib may import only the workspace protocol'],
    ['client/src/x.ts', '../../lib/src/clock.ts', 'client may import only the workspace protocol'],
    ['lib/src/clock.ts', 'pino', 'lib → pino'],
    ['client/src/x.ts', 'node:fs', 'client → node:fs'],
    ['client/src/x.ts', 'react', 'client → react'],
  ])('forbids %s to import %s', (from, specifier, says) => {
    const faults = faultsOf(from, specifier);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`${from}:1  `);
    expect(faults[0]).toContain(says);
  });

  test('reports each forbidden import with its line', () => {
    expect(faultsOf('agent/src/converge/plan.ts', '../host/clock.ts', 'node:fs', '../connection/link.ts')).toEqual([
      expect.stringMatching(/^agent\/src\/converge\/plan\.ts:2 {2}agent\/converge → node:fs/),
      expect.stringMatching(/^agent\/src\/converge\/plan\.ts:3 {2}agent\/converge → agent\/connection/),
    ]);
  });

  test('reports file and folder import cycles, including type imports', () => {
    write('protocol/src/wire/a.ts', "import type { B } from './b.ts';\nimport '../module/c.ts';\n");
    write('protocol/src/wire/b.ts', "const a = await import('./a.ts');\n");
    write('protocol/src/module/c.ts', "import '../wire/d.ts';\n");
    write('protocol/src/wire/d.ts', '');
    expect(wrongImports(root)).toEqual([
      expect.stringContaining('protocol/src/wire/a.ts ↔ protocol/src/wire/b.ts: import cycle;'),
      expect.stringContaining('protocol/src/{module,wire}: import cycle of folders;'),
    ]);
    write('protocol/src/module/c.ts', '');
    write('protocol/src/module/c.test.ts', "import '../wire/d.ts';\n");
    write('protocol/src/wire/b.ts', "import './missing.ts';\n");
    expect(wrongImports(root)).toEqual([]);
  });

  test('refuses requests outside console/src/api', () => {
    const asks = "fetch('/x');\nnew WebSocket(url);\nnew window.EventSource(url);\nnavigator.sendBeacon(url);";
    write('console/src/api/live.ts', asks);
    write('console/src/api/live.test.ts', asks);
    expect(wrongImports(root)).toEqual([]);
    write('console/src/terminal/screen.ts', asks);
    expect(wrongImports(root)).toEqual(
      ['fetch', 'WebSocket', 'EventSource', 'sendBeacon'].map((name, index) =>
        expect.stringContaining(`console/src/terminal/screen.ts:${index + 1}  console/terminal → ${name}: only`),
      ),
    );
  });

  test('rejects console code that sets HTML from strings, but allows reading innerHTML and calling methods with the same names', () => {
    write(
      'console/src/api/x.tsx',
      'a.innerHTML = b;\nconst c = <p dangerouslySetInnerHTML={d} />;\na.insertAdjacentHTML("x", b);\neval(b);',
    );
    expect(wrongImports(root)).toEqual(
      ['innerHTML', 'dangerouslySetInnerHTML', 'insertAdjacentHTML', 'eval'].map((name, index) =>
        expect.stringContaining(`console/src/api/x.tsx:${index + 1}  console/api → ${name}: agents and operators`),
      ),
    );
    write('console/src/api/x.tsx', 'query.fetch();\nconst fetched = a.innerHTML;\ntype A = WebSocket;');
    expect(wrongImports(root)).toEqual([]);
  });

  test('refuses agent code outside ownership.ts that sets owners or permissions', () => {
    const calls =
      "import { fchmodSync } from 'node:fs';\nfs['lchown'](p, 1, 1);\nawait handle.chmod(1);\nrun('chown');\n";
    write('agent/src/host/files/ownership.ts', calls);
    write('agent/src/host/x.test.ts', calls);
    expect(wrongImports(root)).toEqual([]);
    write('agent/src/host/x.ts', calls);
    expect(wrongImports(root)).toEqual(
      ['fchmodSync', 'lchown', 'chmod', 'chown'].map((name, index) =>
        expect.stringContaining(
          `agent/src/host/x.ts:${index + 1}  agent/src/host/x.ts → ${name}: only agent/src/host/files/own`,
        ),
      ),
    );
    write('agent/src/host/x.ts', "// chmod\nthrow new Error('run: chmod 700 x');\n");
    expect(wrongImports(root)).toEqual([]);
  });

  test('skips installed and built files', () => {
    write('protocol/node_modules/x/index.js', "import 'fs';");
    write('agent/dist/agent.js', "import '../../orchestrator/src/main.ts';");
    expect(wrongImports(root)).toEqual([]);
  });
});
