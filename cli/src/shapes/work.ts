import {
  applyAgent,
  cancelOperation,
  checkDrift,
  getOperation,
  getOperationOutput,
  getOverview,
  listDrift,
  listOperations,
  listReconcile,
  operationSchema,
  planAgent,
  startRun,
} from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, prints, type Shapes } from './shape.ts';

const outputs = (answerOf(getOperationOutput) as z.ZodObject<{ output: z.ZodType }>).shape.output;

export const shapes: Shapes = {
  plan: prints(
    z.union([
      answerOf(planAgent).describe('of the agent that was named'),
      answerOf(startRun).describe('of several, or by selector'),
    ]),
  ),
  apply: prints(
    z.union([
      answerOf(applyAgent).describe('of the agent that was named'),
      answerOf(startRun).describe('of several, or by selector'),
    ]),
  ),
  drift: prints(
    z.union([
      answerOf(checkDrift).describe('of one agent'),
      z.null().describe('--latest of an agent that was never checked'),
      answerOf(listDrift).describe('of all agents, and with --history'),
    ]),
  ),
  overview: prints(answerOf(getOverview)),
  reconcile: prints(answerOf(listReconcile)),
  'operations list': prints(answerOf(listOperations)),
  'operations show': prints(
    z.union([
      answerOf(getOperation),
      operationSchema.extend({ output: outputs }).meta({ id: 'OperationWithOutput' }).describe('with --output'),
    ]),
  ),
  'operations output': prints(answerOf(getOperationOutput)),
  'operations follow': prints(answerOf(getOperation)),
  'operations cancel': prints(z.array(answerOf(cancelOperation))),
};
