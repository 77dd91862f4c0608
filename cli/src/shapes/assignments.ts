import {
  applyAssignment,
  cancelRun,
  createAssignment,
  getAssignment,
  getRun,
  listAssignments,
  listRuns,
  planAssignment,
  updateAssignment,
} from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

export const shapes: Shapes = {
  'assignments list': prints(answerOf(listAssignments)),
  'assignments show': prints(answerOf(getAssignment)),
  'assignments create': prints(answerOf(createAssignment)),
  'assignments update': prints(answerOf(updateAssignment)),
  'assignments remove': doneTo('removed'),
  'assignments plan': prints(answerOf(planAssignment)),
  'assignments apply': prints(answerOf(applyAssignment)),
  'runs list': prints(answerOf(listRuns)),
  'runs show': prints(answerOf(getRun)),
  'runs follow': prints(answerOf(getRun)),
  'runs retry': prints(answerOf(getRun)),
  'runs cancel': prints(z.array(answerOf(cancelRun))),
};
