import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addOperator } from '@muster/protocol/http';
import { expect } from 'vitest';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { type Stage, test } from './harness.ts';

const page = readFileSync(join(root, 'docs/sign-in-by-hand.md'), 'utf8');
const [makeKey = '', ...rest] = blocksOf(page)
  .filter(({ language }) => language === 'sh')
  .map(({ source }) => source);

/** Runs commands from the page in one shell, which stops at the first failure. @returns the output */
function shell(stage: Stage, script: string, variables: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-eu', '-c', script], {
      cwd: stage.folder('by-hand'),
      env: stage.environment(variables),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    let said = '';
    child.stdout.on('data', (text) => (printed += text));
    child.stderr.on('data', (text) => (said += text));
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(printed) : reject(new Error(`exited with ${code}\n${said}\nprinted:\n${printed}`)),
    );
  });
}

test('the commands in docs/sign-in-by-hand.md sign in with openssl and curl, and print the documented output', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  await stage.agent(orchestrator, 'web-1', { token: null });
  await shell(stage, makeKey, {});
  const public_key = readFileSync(join(stage.folder('by-hand'), 'operator.pub'), 'utf8');
  await orchestrator.call(addOperator, { body: { public_key, username: 'grace', role: 'admin' } });

  const printed = await shell(stage, rest.join('\n'), {
    API: orchestrator.url,
    CA: join(orchestrator.dataDir, 'api.crt'),
    ROOT: stage.folder('root'),
  });
  const promised = [...rest.join('\n').matchAll(/# prints (.*)$/gm)].map(([, text]) => text);
  expect(promised.length).toBeGreaterThan(15);
  expect(printed.trimEnd().split('\n')).toEqual(promised);
});
