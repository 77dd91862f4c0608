import { applyAgent, getOperation, type Operation } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { operationQuery, startApply } from './operations.ts';
import { queryClient } from './query-client.ts';

test('fetches a started operation again, because it may have ended before the response arrived', async () => {
  const api = fakeApi();
  const ended = getOperation.example.answer as never as Operation;
  api.answer(applyAgent, { ...ended, status: 'running', finished_at: null } as never);
  api.answer(getOperation, ended as never);
  const { operation_id, status } = await startApply({ node_id: ended.node_id, modules: [] });
  expect(status).toBe('running');
  expect(await queryClient.fetchQuery(operationQuery(operation_id))).toMatchObject({ status: ended.status });
});
