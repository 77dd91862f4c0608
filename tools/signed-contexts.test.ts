import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signedContexts } from '@muster/protocol/signed-contexts';
import { expect, test } from 'vitest';
import { root } from './suite/cli.ts';

/** Compares the list of signed messages in docs/security.md with the code. */

const page = readFileSync(join(root, 'docs/security.md'), 'utf8');
const table = page.split('\n### What keys sign\n')[1]?.split('\n## ')[0] ?? '';
const written = (context: string) => `\`"${context.replaceAll('\0', '\\0').replaceAll('\n', '\\n')}"\``;

test('lists exactly the context strings of the code in docs/security.md', () => {
  const listed = [...table.matchAll(/^\| [^|]+ \| (`"muster [^`|]+"`) \|/gm)].map(([, context]) => context);
  expect(listed.sort()).toEqual(Object.values(signedContexts).map(written).sort());
});

test('uses no context string that is a prefix of another', () => {
  const contexts = Object.values(signedContexts);
  for (const one of contexts) expect(contexts.filter((other) => other.startsWith(one))).toEqual([one]);
});

/**
 * Files that create or verify signatures. Before you add a file, define a context string for its signature, and add the
 * string to the table.
 */
const signing = [
  'agent/src/compose/start.ts',
  'agent/src/connection/agent-key.ts',
  'agent/src/connection/announcements.ts',
  'agent/src/connection/hello.ts',
  'agent/src/connection/next-key.ts',
  'cli/src/keys/key.ts',
  'cli/src/keys/make-key.ts',
  'cli/src/keys/ssh-key.ts',
  'cli/src/transport/session.ts',
  'console/src/api/sign-in/ed25519.ts',
  'console/src/api/sign-in/sign-in.ts',
  'orchestrator/src/compose/http.ts',
  'orchestrator/src/domain/agent-link/agent-keys.ts',
  'orchestrator/src/domain/agents/discovery.ts',
  'orchestrator/src/domain/operators/sign-in.ts',
  'orchestrator/src/gateway/hello-check.ts',
];

test('creates and verifies signatures only in the reviewed files', () => {
  const call =
    /(?:\b(?:sign|verify|signEd25519|verifySignature|createSign|createVerify)\((?:null|seed|bytes|encoded|message|handshake)|(?<!Math)\.(?:sign|subtle\.sign|subtle\.verify)\()/;
  const files = execFileSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '*/src/*.ts', '*/src/*.tsx'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  )
    .split('\n')
    .filter((path) => /^(?:agent|cli|console|orchestrator|protocol)\/src\/.*(?<!\.test)\.tsx?$/.test(path));
  expect(files.filter((path) => call.test(readFileSync(join(root, path), 'utf8')))).toEqual(signing);
});
