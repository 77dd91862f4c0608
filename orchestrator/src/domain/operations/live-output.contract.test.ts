import { expect, test } from 'vitest';
import { describePostgres } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent } from '../../../test/domain.ts';
import { NatsFleet } from '../../../test/nats/nats-fleet.ts';
import { natsMissing } from '../../../test/nats/nats-server.ts';
import { getOutput } from '../../../test/reading.ts';
import { openPair } from '../../../test/replicas.ts';
import { uploadModule } from '../modules/modules.ts';
import { createLiveOutput } from './live-output.ts';
import { submitOperation } from './operations.ts';

describePostgres('live output of an agent at another replica', (fixture) => {
  test('shows and announces output through NATS, and shows nothing without an answer', async ({
    skip,
    onTestFinished,
  }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    const [one, two] = await openPair(fixture);
    const fleet = await NatsFleet.start();
    onTestFinished(() => fleet.end());
    const [first, second] = [one, two].map(({ context }) => fleet.join({ own: context.incarnation }));
    await fleet.isComplete();
    const { actor } = await newAdmin(one);
    const agent = await newAgent(one, actor, 'web-1');
    const resource = { id: 'b', resource: { script: { program: 'sh', manages: 'b', apply: 'true' } } };
    const motd = { name: 'motd', supports: [{ platform: 'linux' }], resources: [resource] };
    await uploadModule(one.context, actor, 'motd', JSON.stringify(motd));
    const applying = { kind: 'apply', modules: ['motd'], queue: false } as const;
    const operation_id = await submitOperation(one.context, actor, agent.id, applying);
    const owner = createLiveOutput({ ...one.context, bus: first! });
    onTestFinished(() => owner.close());
    const replicaOf = () => ({ incarnation: one.context.incarnation, name: 'one' });
    const context = { ...two.context, bus: second!, presence: { ...two.context.presence, replicaOf } };
    const asker = createLiveOutput(context);
    onTestFinished(() => asker.close());
    const hints: string[] = [];
    second!.subscribe((hint, source) => hints.push(`${source} ${hint.type}`));

    const stdout = { from: 0, to: 7, text: 'step 1\n' };
    await owner.printed(agent.id, { type: 'output_progress', operation_id, resource: 'motd/b', stdout, stderr: null });
    await expect.poll(() => hints).toContain('other output');
    const { output } = await getOutput(context, asker, 'web-1', operation_id);
    expect(output).toEqual({
      'motd/b': { stdout: 'step 1\n', stderr: '', exit_code: null, truncated: false, running: true },
    });
    owner.close();
    expect(await asker.of(agent.id, operation_id)).toEqual({});
  });
});
