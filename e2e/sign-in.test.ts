import { ApiError } from '@muster/protocol/client';
import { getStatus, listAgents, listOperators } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { newOperator } from './client.ts';
import { test } from './harness.ts';

describe('signing in', () => {
  test('makes the bootstrap key the first admin, even after a restart', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const operators = await orchestrator.call(listOperators, {});
    expect(operators).toMatchObject([{ username: 'ada', role: 'admin', bootstrap: true }]);

    await orchestrator.stop();
    await orchestrator.start();
    expect(await orchestrator.call(listOperators, {})).toEqual(operators);
    // Another process without a sign-in session.
    expect(await orchestrator.clientFor(orchestrator.operator)(listOperators, {})).toEqual(operators);
  });

  test('gives no nonce to an unknown key, and refuses requests without a sign-in session', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const stranger = orchestrator.clientFor(newOperator());
    const refusal = await stranger(listAgents, {}).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ApiError);
    expect((refusal as ApiError).problem).toMatchObject({ status: 403, code: 'operator_unknown' });
    expect(await stranger(getStatus, {})).toMatchObject({ status: 'ok', public_key: orchestrator.publicKey });
  });
});
