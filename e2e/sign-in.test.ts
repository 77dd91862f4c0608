import { ApiError } from '@muster/protocol/client';
import { getStatus, listAgents, listOperators } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { newOperator } from './client.ts';
import { test } from './harness.ts';

describe('signing in', () => {
  test('the operator with the bootstrap key is the only admin, even after a restart', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const operators = await orchestrator.call(listOperators, {});
    expect(operators).toMatchObject([{ username: 'ada', role: 'admin', bootstrap: true }]);

    await orchestrator.stop();
    await orchestrator.start();
    expect(await orchestrator.call(listOperators, {})).toEqual(operators);
    // A new client signs in again.
    expect(await orchestrator.clientFor(orchestrator.operator)(listOperators, {})).toEqual(operators);
  });

  test('the orchestrator refuses the sign-in of an unknown key, whose holder can read only the public status', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const stranger = orchestrator.clientFor(newOperator());
    const refusal = await stranger(listAgents, {}).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ApiError);
    expect((refusal as ApiError).problem).toMatchObject({ status: 403, code: 'operator_unknown' });
    expect(await stranger(getStatus, {})).toMatchObject({ status: 'ok', public_key: orchestrator.publicKey });
  });
});
