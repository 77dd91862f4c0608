import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wrongArrows } from './boundaries.ts';
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
/** The faults of a tree of one file. */
const faultsOf = (path: string, ...imports: string[]) => {
  write(path, imports.map((specifier) => `import '${specifier}';\n`).join(''));
  return wrongArrows(root);
};

describe('imports of a file', () => {
  test('every way to name a module is found, with its line', () => {
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

  test('text that does not parse is an error, not a file without imports', () => {
    expect(() => importsOf('x.ts', 'import {')).toThrow('x.ts does not parse');
  });
});

describe('arrows that are right', () => {
  test.each([
    ['orchestrator/src/http/routes/agents.ts', '../../domain/agents.ts'],
    ['orchestrator/src/domain/agents.ts', '../store/agents.ts'],
    ['orchestrator/src/domain/agents.ts', '../bus/bus.ts'],
    ['orchestrator/src/gateway/link.ts', '../bus/bus.ts'],
    ['orchestrator/src/store/agents.ts', 'kysely'],
    ['orchestrator/src/http/app.ts', '../log.ts'],
    ['orchestrator/src/version.ts', '../package.json'],
    ['orchestrator/src/compose.ts', './store/agents.ts'],
    ['orchestrator/src/main.ts', './compose.ts'],
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
  ])('%s imports %s', (from, specifier) => {
    expect(faultsOf(from, specifier)).toEqual([]);
  });
});

describe('arrows that are wrong', () => {
  test.each([
    ['orchestrator/src/store/agents.ts', '../domain/agents.ts', 'orchestrator/store → orchestrator/domain'],
    ['orchestrator/src/bus/bus.ts', '../store/agents.ts', 'orchestrator/bus → orchestrator/store'],
    ['orchestrator/src/domain/agents.ts', '../http/app.ts', 'orchestrator/domain → orchestrator/http'],
    ['orchestrator/src/domain/agents.ts', '../gateway/link.ts', 'orchestrator/domain → orchestrator/gateway'],
    ['orchestrator/src/http/app.ts', '../store/agents.ts', 'orchestrator/http → orchestrator/store'],
    ['orchestrator/src/http/app.ts', '../gateway/link.ts', 'orchestrator/http → orchestrator/gateway'],
    ['orchestrator/src/http/app.ts', '../compose.ts', 'it wires the parts'],
    ['orchestrator/src/log.ts', './domain/agents.ts', 'files directly in src'],
    ['orchestrator/src/domain/agents.ts', 'kysely', 'orchestrator/domain → kysely'],
    ['orchestrator/src/compose.ts', 'better-sqlite3', 'queries live in the store only'],
    ['orchestrator/src/terminals/x.ts', '../store/agents.ts', 'the folder terminals is not known'],
    ['orchestrator/src/domain/agents.ts', './agents.test.ts', 'test code'],
    ['orchestrator/src/domain/agents.ts', '../../test/fixture.ts', 'test code'],
    ['agent/src/host/clock.ts', '../resources/file.ts', 'agent/host → agent/resources'],
    ['agent/src/resources/file.ts', '../converge/plan.ts', 'agent/resources → agent/converge'],
    ['agent/src/converge/engine.ts', '../connection/link.ts', 'agent/converge → agent/connection'],
    ['agent/src/resources/script.ts', 'node:child_process', 'agent/resources → node:child_process'],
    ['agent/src/journal/journal.ts', 'node:child_process', 'agent/journal → node:child_process'],
    ['agent/src/resources/file.ts', '../journal/journal.ts', 'agent/resources → agent/journal'],
    ['agent/src/connection/key.ts', 'node:fs/promises', 'the only access to the operating system'],
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
  ])('%s imports %s', (from, specifier, says) => {
    const faults = faultsOf(from, specifier);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`${from}:1  `);
    expect(faults[0]).toContain(says);
  });

  test('the line is that of the import, and each fault is told', () => {
    expect(faultsOf('agent/src/converge/plan.ts', '../host/clock.ts', 'node:fs', '../connection/link.ts')).toEqual([
      expect.stringMatching(/^agent\/src\/converge\/plan\.ts:2 {2}agent\/converge → node:fs/),
      expect.stringMatching(/^agent\/src\/converge\/plan\.ts:3 {2}agent\/converge → agent\/connection/),
    ]);
  });

  test('the console asks the orchestrator in one place', () => {
    const asks = "fetch('/x');\nnew WebSocket(url);\nnew window.EventSource(url);\nnavigator.sendBeacon(url);";
    write('console/src/api/live.ts', asks);
    write('console/src/api/live.test.ts', asks);
    expect(wrongArrows(root)).toEqual([]);
    write('console/src/terminal/screen.ts', asks);
    expect(wrongArrows(root)).toEqual(
      ['fetch', 'WebSocket', 'EventSource', 'sendBeacon'].map((name, index) =>
        expect.stringContaining(`console/src/terminal/screen.ts:${index + 1}  console/terminal → ${name}: only`),
      ),
    );
  });

  test('the console makes no text into a page, and has names of its own', () => {
    write(
      'console/src/api/x.tsx',
      'a.innerHTML = b;\nconst c = <p dangerouslySetInnerHTML={d} />;\na.insertAdjacentHTML("x", b);\neval(b);',
    );
    expect(wrongArrows(root)).toEqual(
      ['innerHTML', 'dangerouslySetInnerHTML', 'insertAdjacentHTML', 'eval'].map((name, index) =>
        expect.stringContaining(`console/src/api/x.tsx:${index + 1}  console/api → ${name}: what comes from`),
      ),
    );
    write('console/src/api/x.tsx', 'query.fetch();\nconst fetched = a.innerHTML;\ntype A = WebSocket;');
    expect(wrongArrows(root)).toEqual([]);
  });

  test('one file of the agent sets owners and permissions', () => {
    const calls =
      "import { fchmodSync } from 'node:fs';\nfs['lchown'](p, 1, 1);\nawait handle.chmod(1);\nrun('chown');\n";
    write('agent/src/host/files/ownership.ts', calls);
    write('agent/src/host/x.test.ts', calls);
    expect(wrongArrows(root)).toEqual([]);
    write('agent/src/host/x.ts', calls);
    expect(wrongArrows(root)).toEqual(
      ['fchmodSync', 'lchown', 'chmod', 'chown'].map((name, index) =>
        expect.stringContaining(
          `agent/src/host/x.ts:${index + 1}  agent/src/host/x.ts → ${name}: only agent/src/host/files/own`,
        ),
      ),
    );
    write('agent/src/host/x.ts', "// chmod\nthrow new Error('run: chmod 700 x');\n");
    expect(wrongArrows(root)).toEqual([]);
  });

  test('what is installed or built is not looked at', () => {
    write('protocol/node_modules/x/index.js', "import 'fs';");
    write('agent/dist/agent.js', "import '../../orchestrator/src/main.ts';");
    expect(wrongArrows(root)).toEqual([]);
  });
});
