import { createEnrolmentToken, getAgent, getAttributes, listAgents, setAgentStatus } from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

const tags = z.record(z.string(), z.string());
const tagsOfAgents = z.union([
  z.strictObject({ node_id: z.string(), tags }).describe('of the agent that was named, all its tags as they are now'),
  z
    .array(z.strictObject({ node_id: z.string(), name: z.string().nullable(), tags }))
    .describe('of several, or by selector'),
]);
const oneOrMore = (agent: z.ZodType) =>
  z.union([agent.describe('that was named'), z.array(agent).describe('of several, or by selector')]);

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
      answerOf(getAttributes).describe('of the agent that was named'),
      z.record(z.string(), answerOf(getAttributes)).describe('of several, by node id'),
    ]),
  ),
  'agents enroll': prints(answerOf(createEnrolmentToken)),
};
