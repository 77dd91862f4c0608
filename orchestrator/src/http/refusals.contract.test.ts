import { afterEach, expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { newKey } from '../../test/domain.ts';
import { type RealApi, realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { refusalsEveryMs } from '../domain/audit/refusal-throttle.ts';
import { addOperator } from '../domain/operators/operators.ts';
import type { AppOptions } from './app.ts';

const wrongSignature = '0'.repeat(128);
const openApi = realApiFixture();

describeAnyDatabase('recorded refusals', (fixture) => {
  const stores = samplesFixture(fixture);
  const opened: RealApi[] = [];
  afterEach(async () => {
    for (const { app } of opened.splice(0)) await app.close();
  });

  const open = async (options: Partial<AppOptions> = {}) => {
    const api = await openApi(fixture, await stores.open(), options);
    opened.push(api);
    const { domain, app, actor } = api;
    const post = (url: string, payload: object, from = '192.0.2.1', authorization = '') =>
      app.inject({
        method: 'POST',
        url: `/api/v1${url}`,
        payload,
        remoteAddress: from,
        ...(authorization ? { headers: { authorization } } : {}),
      });
    const refusals = async () => {
      const { events } = await listAudit(domain.context, { category: 'auth', limit: 500 });
      return events
        .filter(({ event_type }) => /refused|forbidden/.test(event_type))
        .reverse()
        .map(({ event_type, severity, actor: { name }, target, metadata }) => {
          expect(severity).toBe('warning');
          return { event_type, name, target: target.name, metadata };
        });
    };
    const anOperator = async () => {
      const key = await newKey();
      await addOperator(domain.context, actor, { public_key: key.hex, username: 'eve', role: 'operator' });
      return { key, authorization: `Bearer ${await tokenOf(domain, key)}` };
    };
    return { ...api, post, refusals, anOperator };
  };

  test('records a refused sign-in once per operator, address, and reason, and repetitions as an hourly count', async () => {
    const { domain, key, post, refusals } = await open();
    const verify = (from: string) =>
      post('/auth/verify', { public_key: key.hex, signature: wrongSignature }, from).then(
        ({ statusCode }) => statusCode,
      );
    for (let attempt = 0; attempt < 4; attempt++) expect(await verify('192.0.2.1')).toBe(401);
    // All addresses in an IPv6 network count as one address.
    for (const at of [1, 2, 3]) expect(await verify(`2001:db8:0:1::${at}`)).toBe(401);
    const stranger = await newKey();
    expect((await post('/auth/challenge', { public_key: stranger.hex })).statusCode).toBe(403);
    expect((await post('/auth/challenge', { public_key: (await newKey()).hex })).statusCode).toBe(403);
    expect((await post('/auth/web-login/redeem', { code: 'A'.repeat(43) })).statusCode).toBe(401);
    const first = [
      { name: 'ada', metadata: { code: 'signature_invalid', ip: '192.0.2.1', key_id: key.id } },
      { name: 'ada', metadata: { code: 'signature_invalid', ip: '2001:db8:0:1::1', key_id: key.id } },
      { name: '', metadata: { code: 'operator_unknown', ip: '192.0.2.1', key_id: stranger.id } },
      { name: '', metadata: { code: 'login_code_invalid', ip: '192.0.2.1' } },
    ].map((each) => ({ event_type: 'auth.refused', target: '', ...each }));
    expect(await refusals()).toEqual(first);

    const since = new Date(domain.clock.now()).toISOString();
    domain.clock.advance(refusalsEveryMs - 1);
    await domain.refusals.sweep();
    expect(await refusals()).toHaveLength(4);
    domain.clock.advance(1);
    await domain.refusals.sweep();
    await domain.refusals.sweep();
    expect((await refusals()).slice(4).map(({ metadata }) => metadata)).toEqual([
      { ...first[0]?.metadata, count: 3, since },
      { ...first[1]?.metadata, count: 2, since },
      { ...first[2]?.metadata, count: 1, since },
    ]);
  });

  test('records a refusal for a missing role once per operator and route, before the response', async () => {
    const { domain, post, refusals, anOperator } = await open();
    const { authorization } = await anOperator();
    const body = { public_key: (await newKey()).hex, username: 'mallory', role: 'admin' };
    for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
      expect((await post('/operators', body, from, authorization)).statusCode).toBe(403);
    expect((await post('/maintenance-windows', {}, '192.0.2.1', authorization)).statusCode).toBe(403);
    const forbidden = { event_type: 'auth.forbidden', name: 'eve', metadata: { code: 'forbidden', ip: '192.0.2.1' } };
    expect(await refusals()).toEqual([
      { ...forbidden, target: 'POST /operators' },
      { ...forbidden, target: 'POST /maintenance-windows' },
    ]);
    // At shutdown, the count is recorded before its hour ends.
    await domain.refusals.close();
    expect((await refusals()).at(-1)).toMatchObject({ target: 'POST /operators', metadata: { count: 2 } });
  });

  test('refuses a request even if recording the refusal fails, and records it later', async () => {
    const { domain, post, refusals, anOperator } = await open();
    const { authorization } = await anOperator();
    const write = domain.db.write;
    domain.db.write = () => Promise.reject(new Error('away'));
    expect((await post('/maintenance-windows', {}, '192.0.2.1', authorization)).statusCode).toBe(403);
    domain.db.write = write;
    expect(await refusals()).toEqual([]);
    expect((await post('/maintenance-windows', {}, '192.0.2.1', authorization)).statusCode).toBe(403);
    expect(await refusals()).toHaveLength(1);
  });

  test('records refused secrets over plain HTTP without their values', async () => {
    const { token, post, refusals, domain } = await open();
    const body = { name: 'db', value: 'canary-value-1' };
    for (let attempt = 0; attempt < 2; attempt++)
      expect((await post('/secrets', body, '192.0.2.9', `Bearer ${token}`)).json()).toMatchObject({
        code: 'plaintext_refused',
      });
    expect(await refusals()).toEqual([
      {
        event_type: 'auth.plaintext_refused',
        name: 'ada',
        target: 'POST /secrets',
        metadata: { code: 'plaintext_refused', ip: '192.0.2.9' },
      },
    ]);
    expect(JSON.stringify(await listAudit(domain.context, { limit: 500 }))).not.toContain('canary-value-1');
  });

  test('records many sign-ins above the rate limit as one refusal', async () => {
    const { key, post, refusals } = await open({
      limits: { rates: { signIn: { perMinute: 60, burst: 2 }, sessionPerSecond: 1000 } },
    });
    const answers = [];
    for (let attempt = 0; attempt < 20; attempt++)
      answers.push((await post('/auth/challenge', { public_key: key.hex })).statusCode);
    expect(answers.filter((status) => status === 429).length).toBeGreaterThan(10);
    expect(await refusals()).toEqual([
      { event_type: 'auth.refused', name: '', target: '', metadata: { code: 'rate_limited', ip: '192.0.2.1' } },
    ]);
  });

  test('bounds log entries and memory for many addresses and keys', async () => {
    const { domain, key, refusals } = await open();
    const ip = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
    const attempts = 1_000;
    for (let at = 0; at < attempts; at++) {
      const from = { ip: ip(at), loopback: false };
      await domain.signIn.challenge(at.toString(16).padStart(64, '0'), false, from).catch(() => {});
      await domain.signIn.redeem(`code ${at}`, from).catch(() => {});
      if (at % 10 === 0) await domain.signIn.verify(key.hex, wrongSignature, null, from).catch(() => {});
      await domain.links.refused(
        { code: 'signature_invalid', message: `no ${at}`, retry_after_secs: null },
        { node_id: at.toString(16).padStart(32, '0'), remote_ip: ip(at) },
      );
    }
    // Expects 50 refusals without an operator, 20 with an operator, and two counts of further refusals.
    expect(await refusals()).toHaveLength(72);
    expect((await listAudit(domain.context, { event_type: 'agent.refused', limit: 500 })).events).toHaveLength(51);
    domain.clock.advance(refusalsEveryMs);
    await domain.refusals.sweep();
    const summaries = (await refusals()).slice(72).map(({ metadata }) => metadata);
    expect(summaries).toHaveLength(2);
    // A key that is not on the curve is malformed input, so the request does not count as a sign-in.
    expect(summaries.every(({ count }) => Number(count) >= 79)).toBe(true);
  });
});
