import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OperationMessage } from '@muster/protocol/wire';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestOrchestrator } from '../test/test-orchestrator.ts';
import { startAgent } from './compose.ts';
import { systemClock } from './host/clock.ts';
import type { Log } from './log.ts';

let dataDir: string;
let orchestrator: TestOrchestrator;
let logged: { level: string; message: string }[];
const write = (level: string) => (_fields: object, message: string) => void logged.push({ level, message });
const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'muster-agent-'));
  orchestrator = await TestOrchestrator.start();
  logged = [];
});
afterEach(async () => {
  await orchestrator.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const start = () =>
  startAgent(
    {
      dataDir,
      configPath: null,
      factsDir: null,
      hostname: 'web-1',
      logFormat: 'text',
      logLevel: 'info',
      connect: {
        host: '127.0.0.1',
        port: orchestrator.port,
        orchestratorKey: orchestrator.publicKey.toString('hex'),
        token: null,
      },
    },
    systemClock,
    log,
  );

const operation: OperationMessage = {
  type: 'operation',
  operation_id: '01HZZZZZZZZZZZZZZZZZZZ0001',
  kind: 'apply',
  modules: [],
  resources: [],
  keep_modules: [],
  snapshot_operation_id: null,
};

it('stops in peace when acknowledgements and orders come late, and takes up what it holds at the next start', async () => {
  const agent = await start();
  const { link } = await orchestrator.welcomed();
  link.send(operation);
  const report = await link.next('report');
  // From here on everything of the orchestrator is late.
  const bye = link.next('bye').then(() => {
    link.send({ type: 'ack', seq: report.seq });
    link.send({ type: 'cancel', operation_id: operation.operation_id });
    link.send({ ...operation, operation_id: '01HZZZZZZZZZZZZZZZZZZZ0002' });
    link.send({ type: 'credit', seq: report.seq, part: 0 });
  });
  await agent.stop('SIGTERM');
  await bye;
  expect(logged.filter(({ level }) => level === 'error')).toEqual([]);

  const again = await start();
  const second = await orchestrator.welcomed();
  expect(second.hello.open_operations).toEqual([{ operation_id: operation.operation_id, state: 'finished' }]);
  expect((await second.link.next('report')).reports.at(-1)).toMatchObject({ type: 'finished', status: 'succeeded' });
  await again.stop('SIGTERM');
});
