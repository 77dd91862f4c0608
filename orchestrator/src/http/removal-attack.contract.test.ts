import { expect, test } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { newKey } from '../../test/domain.ts';
import { realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';
import { addOperator, removeOperator } from '../domain/operators/operators.ts';
import { defineQuery } from '../store/query.ts';

const openApi = realApiFixture();
const allTags = defineQuery('test/every tag', (db) =>
  db.selectFrom('agent_tags').select(['key', 'value']).orderBy('key'),
);

describeDatabases('removal of an operator during writes', (fixture) => {
  const stores = samplesFixture(fixture);

  test('refuses all changes by a removed operator after the removal was acknowledged', async () => {
    const api = await openApi(fixture, await stores.open());
    const url = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
    const key = await newKey();
    await addOperator(api.domain.context, api.actor, { public_key: key.hex, username: 'greta', role: 'admin' });
    const headers = { authorization: `Bearer ${await tokenOf(api.domain, key)}`, 'content-type': 'application/json' };
    const stream = fetch(new URL('/api/v1/events', url), { headers: { ...headers, accept: 'text/event-stream' } }).then(
      async (answer) => {
        for await (const _ of answer.body!);
      },
    );
    const streamEnded = stream.then(
      () => true,
      () => true,
    );
    let over = false;
    let removed = false;
    let written = 0;
    const wrong: number[] = [];
    const hammers = Array.from({ length: 10 }, async (_, at) => {
      for (let i = 0; !over; i++) {
        const startedAfter = removed;
        const body = JSON.stringify({ value: `${i}` });
        const sent = fetch(new URL(`/api/v1/agents/web-1/tags/k${at}`, url), { method: 'PUT', headers, body });
        const status = await sent.then(
          (answer) => answer.status,
          () => 0,
        );
        if (status === 200 || status === 204) written++;
        if (startedAfter && status !== 401 && status !== 0 && status !== 429) wrong.push(status);
      }
    });
    while (written < 30) await new Promise((resolve) => setTimeout(resolve, 5));
    await removeOperator(api.domain.context, api.actor, key.id);
    removed = true;
    const tags = JSON.stringify(await api.domain.db.all(allTags, {}));
    await new Promise((resolve) => setTimeout(resolve, 500));
    over = true;
    await Promise.all(hammers);
    expect(JSON.stringify(await api.domain.db.all(allTags, {}))).toBe(tags);
    expect(wrong).toEqual([]);
    expect(await streamEnded).toBe(true);
    await api.app.close();
  });
});
