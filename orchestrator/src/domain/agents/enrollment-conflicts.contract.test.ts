import { expect, test } from 'vitest';
import { describeAnyDatabase, describePostgres } from '../../../test/databases/databases.ts';
import { connect, type Domain, newAdmin, newKey, openDomain } from '../../../test/domain.ts';
import { openPair, suspendedBefore } from '../../../test/replicas.ts';
import { createAgentLinks } from '../agent-link/agent-link-service.ts';
import { createToken } from './enrollment.ts';

const endpoints = { agents: 'muster.example:4747', publicKey: '00'.repeat(32) };

async function newToken(domain: Domain, uses: number): Promise<string> {
  const { actor } = await newAdmin(domain);
  return (await createToken(domain.context, actor, { uses }, endpoints)).token;
}

describeAnyDatabase('agents that enroll at the same time', (fixture) => {
  test('get different names if they have the same hostname', async () => {
    const [a, b] = await openPair(fixture);
    const token = await newToken(a, 2);
    const late = suspendedBefore(a.context, 'agents/enrol');
    const links = createAgentLinks(late.context, a.refusals, a.pending, async () => {}, a.liveOutput, a.rules);
    const [first, second] = [await newKey(), await newKey()];
    const admission = connect({ ...a, links }, first, { token });
    await late.reached;
    expect(await connect(b, second, { token })).toMatchObject({ admitted: true, standing: { name: 'web-1' } });
    late.resume();
    expect(await admission).toMatchObject({
      admitted: true,
      standing: { status: 'approved', name: `web-1-${first.id.slice(0, 4)}` },
    });
  });
});

describePostgres('agents that enroll at the same time', (fixture) => {
  const enroll = async (domain: Domain, token: string, hostname: string) =>
    (await connect(domain, await newKey(), { token, hostname })).admitted;

  test('enroll at one replica without a conflict', async () => {
    const domain = await openDomain(fixture);
    const token = await newToken(domain, 40);
    const before = domain.db.stats().retries;
    const admitted = await Promise.all(
      Array.from({ length: 40 }, (_, at) => enroll(domain, token, `${'abcdefgh'[at % 8]}-${at}`)),
    );
    expect(admitted).toEqual(admitted.map(() => true));
    expect(domain.db.stats().retries - before).toBe(0);
  });
});
