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
      answerOf(planAgent).describe('for one named agent'),
      answerOf(startRun).describe('for several agents, or a selector'),
    ]),
  ),
  apply: prints(
    z.union([
      answerOf(applyAgent).describe('for one named agent'),
      answerOf(startRun).describe('for several agents, or a selector'),
    ]),
  ),
  drift: prints(
    z.union([
      answerOf(checkDrift).describe('for one agent'),
      z.null().describe('--latest of an agent without checks'),
      answerOf(listDrift).describe('for all agents, or with --history'),
    ]),
  ),
  overview: prints(answerOf(getOverview)),
  'out-of-sync': prints(answerOf(listReconcile)),
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
