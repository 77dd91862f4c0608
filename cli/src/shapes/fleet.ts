import {
  createChannel,
  createEnrolmentToken,
  createSecret,
  createWindow,
  discover,
  drainReplica,
  getChannel,
  getSecret,
  getWindow,
  listAgents,
  listChannels,
  listEnrolmentTokens,
  listNotifications,
  listReplicas,
  listSecrets,
  listWindows,
  rotateSecretsKey,
  testChannel,
  undrainReplica,
  updateChannel,
  updateSecret,
  updateWindow,
} from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

const announced = answerOf(discover) as z.ZodObject;
const tested = answerOf(testChannel) as z.ZodObject;

export const shapes: Shapes = {
  discover: prints(
    announced.extend({
      pending: answerOf(listAgents).describe('pending agents that connected after the announcement'),
    }),
  ),
  'replicas list': prints(answerOf(listReplicas)),
  'replicas drain': prints(answerOf(drainReplica)),
  'replicas undrain': prints(answerOf(undrainReplica)),
  'secrets list': prints(answerOf(listSecrets)),
  'secrets get': prints(answerOf(getSecret)),
  'secrets set': prints(answerOf(createSecret)),
  'secrets update': prints(answerOf(updateSecret)),
  'secrets remove': doneTo('removed'),
  'secrets rotate-key': prints(answerOf(rotateSecretsKey)),
  'enrollment-tokens list': prints(answerOf(listEnrolmentTokens)),
  'enrollment-tokens create': prints(answerOf(createEnrolmentToken)),
  'enrollment-tokens revoke': doneTo('revoked'),
  'notifications list': prints(answerOf(listNotifications)),
  'notifications read': prints(z.strictObject({ read: z.union([z.literal('all'), z.array(z.string())]) })),
  'channels list': prints(answerOf(listChannels)),
  'channels show': prints(answerOf(getChannel)),
  'channels add': prints(answerOf(createChannel)),
  'channels update': prints(answerOf(updateChannel)),
  'channels remove': doneTo('removed'),
  'channels test': prints(z.array(tested.extend({ id: z.string() }))),
  'maintenance list': prints(answerOf(listWindows)),
  'maintenance show': prints(answerOf(getWindow)),
  'maintenance update': prints(answerOf(updateWindow)),
  'maintenance add': prints(answerOf(createWindow)),
  'maintenance end': doneTo('ended'),
  'maintenance remove': doneTo('removed'),
};
