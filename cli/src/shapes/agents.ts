import {
  createEnrolmentToken,
  getAgent,
  getAttributes,
  listAgents,
  listValues,
  setAgentStatus,
} from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

const tags = z.record(z.string(), z.string());
const tagsOfAgents = z.union([
  z.strictObject({ node_id: z.string(), tags }).describe('for one named agent: all its tags after the change'),
  z
    .array(z.strictObject({ node_id: z.string(), name: z.string().nullable(), tags }))
    .describe('for several agents, or a selector'),
]);
const oneOrMore = (agent: z.ZodType) =>
  z.union([agent.describe('for one named agent'), z.array(agent).describe('for several agents, or a selector')]);

export const shapes: Shapes = {
  'agents list': prints(answerOf(listAgents)),
  'agents show': prints(oneOrMore(answerOf(getAgent))),
  'agents approve': prints(oneOrMore(answerOf(setAgentStatus))),
  'agents reject': prints(z.array(answerOf(setAgentStatus))),
  'agents remove': doneTo('removed'),
  'agents tag': prints(tagsOfAgents),
  'agents untag': prints(tagsOfAgents),
  'agents attributes': prints(
    z.union([
      answerOf(getAttributes).describe('for one named agent'),
      z.record(z.string(), answerOf(getAttributes)).describe('for several agents, by node id'),
    ]),
  ),
  'agents values': prints(answerOf(listValues)),
  'agents enroll': prints(answerOf(createEnrolmentToken)),
};
