import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  addOperator,
  createChannel,
  listNotifications,
  readAllNotifications,
  testChannel,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { farEnd } from '../orchestrator/test/far-end.ts';
import { root } from '../tools/suite/cli.ts';
import { newOperator } from './client.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';

const secret = 'a key that both sides know';

/** Returns the shell command in docs/operations.md that verifies a signature. */
function documentedCheck(): string {
  const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const [, after = ''] = page.split('To check the signature');
  return /```sh\n(.*?)```/s.exec(after)?.[1] ?? '';
}

test('the orchestrator delivers events to a webhook, signed as documented, even after kill -9', async ({ stage }) => {
  const end = await farEnd(500);
  const directory = mkdtempSync(join(tmpdir(), 'muster-hook-'));
  try {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const config = { url: end.url, secret };
    const { id } = await call(createChannel, { body: { name: 'hook', channel_type: 'webhook', config } });
    const refused = await call(testChannel, { params: { id } }).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      problem: { status: 502, code: 'channel_failed', detail: expect.stringContaining('500') },
    });

    const bob = newOperator();
    await call(addOperator, { body: { public_key: bob.publicKey, username: 'bob', role: 'operator' } });
    await end.seen(2);
    await orchestrator.kill9();
    end.behave(200);
    await orchestrator.start();
    const delivery = await eventually('the webhook has received the event', async () =>
      end.arrived.length > 2 ? (end.arrived.at(-1) ?? null) : null,
    );
    const { event, delivery_id } = JSON.parse(delivery.body);
    expect(event).toMatchObject({ event_type: 'operator.added', target: { name: 'bob' }, actor: { name: 'ada' } });
    expect(JSON.parse(end.arrived[1]?.body ?? '').delivery_id).toBe(delivery_id);

    writeFileSync(join(directory, 'body.json'), delivery.body);
    const check = (signature: unknown) =>
      promisify(execFile)('sh', ['-c', documentedCheck()], {
        cwd: directory,
        env: { ...process.env, SIGNATURE: String(signature), SECRET: secret },
      }).then(
        ({ stdout }) => stdout,
        () => 'refused',
      );
    expect(await check(delivery.headers['x-signature-256'])).toBe('genuine\n');
    expect(await check(`sha256=${'0'.repeat(64)}`)).toBe('refused');

    const page = await call(listNotifications, { query: { unread: 'true' } });
    expect(page).toMatchObject({ notifications: [{ event_type: 'operator.added', read: false }], unread_count: 1 });
    // For a new operator, earlier events do not count as unread notifications.
    expect((await orchestrator.clientFor(bob)(listNotifications, {})).unread_count).toBe(0);
    await call(readAllNotifications, {});
    expect((await call(listNotifications, {})).unread_count).toBe(0);
  } finally {
    await end.close();
    rmSync(directory, { recursive: true });
  }
});
