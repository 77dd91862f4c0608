import { orchestratorMessageSchema } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf } from '../../test/domain.ts';
import { getOperation } from '../../test/reading.ts';
import { uploadModule } from './modules/modules.ts';
import { submitOperation } from './operations/operations.ts';
import { createSecret } from './secrets/secrets.ts';

const site = `name: site
supports: [{ platform: linux }]
parameters: { port: { type: integer, default: 8080 } }
verify:
  - http: { url: "http://127.0.0.1:\${{ param.port }}/\${{ secrets.path }}", status: 204, timeout: 30 }
  - http: { url: "http://127.0.0.1/" }
  - tcp: { port: "\${{ param.port }}" }
  - command: test \${{ agent.name }}
`;
const first = `name: first
supports: [{ platform: linux }]
verify: [{ tcp: { port: 22, host: gateway } }]
`;

describeAnyDatabase('verifications after an apply', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    await uploadModule(context, actor, 'site', site);
    await uploadModule(context, actor, 'first', first);
    const submit = (kind: 'apply' | 'plan' = 'apply', modules = ['first', 'site']) =>
      submitOperation(context, actor, 'web-1', { kind, modules, queue: true });
    return { domain, context, actor, agent, submit };
  };

  test('sends verifications with an apply, in module order, with secrets filled in and marked as sensitive', async () => {
    const { domain, context, actor, agent, submit } = await open();
    await expect(submit()).rejects.toMatchObject({ code: 'module_unresolved', message: /there is no secret "path"/ });
    await createSecret(context, actor, { name: 'path', value: 'hunter2' });
    const id = await submit();
    const message = (await domain.links.nextOperation(agent.id))?.operation;
    expect(message?.verify).toEqual([
      { type: 'tcp', module: 'first', sensitive: false, timeout: 10, host: 'gateway', port: 22 },
      {
        type: 'http',
        module: 'site',
        sensitive: true,
        timeout: 30,
        url: 'http://127.0.0.1:8080/hunter2',
        status: 204,
      },
      { type: 'http', module: 'site', sensitive: false, timeout: 10, url: 'http://127.0.0.1/', status: 200 },
      { type: 'tcp', module: 'site', sensitive: false, timeout: 10, host: null, port: 8080 },
      { type: 'command', module: 'site', sensitive: false, timeout: 10, command: 'test web-1' },
    ]);
    expect(orchestratorMessageSchema.safeParse(JSON.parse(JSON.stringify(message))).success).toBe(true);
    // The agent did not mask the secrets in this report, so the orchestrator removes them.
    const reports = reportsOf(id, [], { now: domain.now(), status: 'failed' }).map((report) =>
      report.type === 'finished' ? { ...report, error: 'verify: http://127.0.0.1:8080/hunter2 answered 502' } : report,
    );
    await domain.links.reported(agent.id, '01'.repeat(16), 1, reports);
    const { status, error } = await getOperation(context, id);
    expect([status, error]).toEqual(['failed', expect.stringMatching(/answered 502/)]);
    expect(error).not.toContain('hunter2');
  });

  test('sends a plan without verifications', async () => {
    const { domain, agent, submit } = await open();
    await submit('plan', ['first']);
    expect((await domain.links.nextOperation(agent.id))?.operation).not.toHaveProperty('verify');
  });

  test('fails an apply with verifications if the agent does not support them, and dispatches other operations', async () => {
    const { domain, context, actor, agent, submit } = await open();
    await uploadModule(context, actor, 'plain', 'name: plain\nsupports: [{ platform: linux }]\n');
    const refused = await submit('apply', ['first']);
    const plan = await submit('plan', ['first']);
    const plain = await submit('apply', ['plain']);
    expect((await domain.links.nextOperation(agent.id, 1))?.operation.operation_id).toBe(plan);
    expect(await getOperation(context, refused)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/a `verify` section, and the agent web-1 .*protocol 1\) does not support it/),
    });
    await domain.links.reported(
      agent.id,
      '01'.repeat(16),
      1,
      reportsOf(plan, [], { now: domain.now(), status: 'succeeded' }),
    );
    expect((await domain.links.nextOperation(agent.id, 1))?.operation.operation_id).toBe(plain);
  });
});
