import { getKind, listKinds } from '@muster/protocol/http';
import { answerOf, prints, type Shapes } from './shape.ts';

export const shapes: Shapes = {
  'kinds list': prints(answerOf(listKinds)),
  'kinds show': prints(answerOf(getKind)),
};
