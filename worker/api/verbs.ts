import type { Answered, Input, operations, OperationId } from "../../protocol/api/operations.ts";
import type { Ctx } from "../ctx.ts";
import { changeAccount } from "../services/accounts/change.ts";
import { getAccount } from "../services/accounts/get.ts";
import { accountDisk } from "../services/accounts/disk.ts";
import { listUnhealthy } from "../services/accounts/unhealthy.ts";
import { listAccounts } from "../services/accounts/list.ts";
import { listActivity, listAllActivity } from "../services/activity/list.ts";
import { changeBillingDetails, getBillingDetails } from "../services/billing-details/change.ts";
import { createBackup } from "../services/backups/create.ts";
import { createVolumeBackup } from "../services/backups/create-of-volume.ts";
import { listFailing } from "../services/backups/list-failing.ts";
import { getBackup } from "../services/backups/get.ts";
import { linkBackup } from "../services/backups/link.ts";
import { listBackups, listBackupsOf, listVolumeBackups } from "../services/backups/list.ts";
import { removeBackup } from "../services/backups/remove.ts";
import { restoreDatabase } from "../services/backups/restore.ts";
import { restoreVolume } from "../services/backups/restore-volume.ts";
import { verifyBackup } from "../services/backups/verify.ts";
import {
  followConversation,
  getConversation,
  listConversations,
  removeConversation,
  renameConversation,
} from "../services/chat/conversations.ts";
import { getChatPrice } from "../services/chat/price.ts";
import { sendMessage, streamMessage } from "../services/chat/send.ts";
import { cancelCommand } from "../services/commands/cancel.ts";
import { getCommand } from "../services/commands/get.ts";
import { listCommands } from "../services/commands/list.ts";
import { getCommandLogs } from "../services/commands/read-log.ts";
import { runCommand } from "../services/commands/run.ts";
import { changeCreditPackage, createCreditPackage } from "../services/credits/change-packages.ts";
import { getCredits } from "../services/credits/get.ts";
import { grantCredits } from "../services/credits/grant.ts";
import { listAllCreditPackages, listCreditPackages } from "../services/credits/list-packages.ts";
import { purchaseCredits } from "../services/credits/purchase.ts";
import { changeDatabase } from "../services/databases/change.ts";
import { createDatabase } from "../services/databases/create.ts";
import { databaseCredentials } from "../services/databases/credentials.ts";
import { endSession } from "../services/databases/end-session.ts";
import { databaseEventsOf } from "../services/databases/events.ts";
import { getDatabase } from "../services/databases/get.ts";
import { getDatabaseLogs } from "../services/databases/get-logs.ts";
import { databaseInsight } from "../services/databases/insight.ts";
import { linkDatabase } from "../services/databases/link.ts";
import { listDatabases } from "../services/databases/list.ts";
import { databaseDisk } from "../services/databases/disk.ts";
import { databaseMetrics } from "../services/databases/metrics.ts";
import { queryDatabase } from "../services/databases/query.ts";
import { removeDatabase } from "../services/databases/remove.ts";
import { rotatePassword } from "../services/databases/rotate.ts";
import { databaseSchema } from "../services/databases/schema.ts";
import { unlinkDatabase } from "../services/databases/unlink.ts";
import { cancelDeployment } from "../services/deployments/cancel.ts";
import { compareDeployments } from "../services/deployments/compare.ts";
import { explainDeployment } from "../services/deployments/explain.ts";
import { getDeployment } from "../services/deployments/get.ts";
import { listDeployments } from "../services/deployments/list.ts";
import { getDeploymentLogs } from "../services/deployments/read-log.ts";
import { createDomain } from "../services/domains/create.ts";
import { getDomain } from "../services/domains/get.ts";
import { listDomains } from "../services/domains/list.ts";
import { removeDomain } from "../services/domains/remove.ts";
import { renewDomain } from "../services/domains/renew.ts";
import { verifyDomain } from "../services/domains/verify.ts";
import { pollDevice } from "../services/device/poll.ts";
import { startDevice } from "../services/device/start.ts";
import { getDns } from "../services/dns/get.ts";
import { followEvents } from "../services/events/follow.ts";
import { changeHost } from "../services/hosts/change.ts";
import { createHost } from "../services/hosts/create.ts";
import { listHosts } from "../services/hosts/list.ts";
import { hostUsage } from "../services/hosts/usage.ts";
import { listSetAside } from "../services/hosts/list-set-aside.ts";
import { removeHost } from "../services/hosts/remove.ts";
import { removeSetAside } from "../services/hosts/remove-set-aside.ts";
import { cancelInvoice } from "../services/invoices/cancel.ts";
import { getInvoice } from "../services/invoices/get.ts";
import { listInvoices } from "../services/invoices/list.ts";
import { voidInvoice } from "../services/invoices/void.ts";
import { createKey } from "../services/keys/create.ts";
import { listKeys } from "../services/keys/list.ts";
import { revokeKey } from "../services/keys/revoke.ts";
import { revokeOwnKey } from "../services/keys/revoke-own.ts";
import { verifyLedger } from "../services/ledger/verify.ts";
import { changeChannel, removeChannel } from "../services/notifications/change-channel.ts";
import { createChannel } from "../services/notifications/create-channel.ts";
import { listChannels, listDeliveries } from "../services/notifications/list.ts";
import { testChannel } from "../services/notifications/test-channel.ts";
import { changePack, createPack } from "../services/packs/change.ts";
import { listAllPacks, listPacks } from "../services/packs/list.ts";
import { listFlags, resolveFlag } from "../services/payments/flags.ts";
import { previewRefund } from "../services/payments/preview-refund.ts";
import { refundInvoice } from "../services/payments/refund.ts";
import { siteEventsOf } from "../services/running/events.ts";
import { getSiteRequests } from "../services/running/get-requests.ts";
import { getSiteRequestStats } from "../services/running/get-request-stats.ts";
import { getSiteLogs } from "../services/running/get-logs.ts";
import { browseFiles } from "../services/running/browse-files.ts";
import { searchSiteLogs } from "../services/running/search-log.ts";
import { siteHealth } from "../services/running/health.ts";
import { siteMetrics } from "../services/running/metrics.ts";
import { changeSchedule } from "../services/schedules/change.ts";
import { createSchedule } from "../services/schedules/create.ts";
import { listSchedules } from "../services/schedules/list.ts";
import { removeSchedule } from "../services/schedules/remove.ts";
import { rotateSecrets } from "../services/secrets/rotate.ts";
import { search } from "../services/search/find.ts";
import { changeSettings } from "../services/settings/change.ts";
import { getSettings } from "../services/settings/read.ts";
import { changeSite } from "../services/sites/change.ts";
import { createSite } from "../services/sites/create.ts";
import { cloneSite } from "../services/sites/clone.ts";
import { siteDisk } from "../services/sites/disk.ts";
import { diagnoseSite } from "../services/sites/diagnose.ts";
import { generateSecret } from "../services/sites/generate-secret.ts";
import { probeSite } from "../services/sites/probe.ts";
import { listEnvVersions } from "../services/sites/env-history.ts";
import { getSite } from "../services/sites/get.ts";
import { listSites } from "../services/sites/list.ts";
import { removeSite } from "../services/sites/remove.ts";
import { restoreEnvVersion } from "../services/sites/restore-env.ts";
import { rollbackSite } from "../services/sites/rollback.ts";
import { inspectSource } from "../services/sources/inspect.ts";
import { changeVolume } from "../services/volumes/change.ts";
import { listVolumes } from "../services/volumes/list.ts";
import { removeVolume } from "../services/volumes/remove.ts";
import { getWebhookAddress, rotateWebhookAddress } from "../services/webhooks/address.ts";
import { listAllSites } from "../services/sites/list-all.ts";
import { listAllDatabases } from "../services/databases/list-all.ts";
import { listAllInvoices } from "../services/invoices/list-all.ts";
import { getAccountForOperator } from "../services/accounts/get-for-operator.ts";
import { cancelJob } from "../services/jobs/cancel.ts";
import { retryJob } from "../services/jobs/retry.ts";
import { listJobs } from "../services/jobs/list.ts";
import { releaseAccount } from "../services/accounts/release.ts";
import { disableTwoFactor } from "../services/accounts/disable-two-factor.ts";
import { changeTermForOperator } from "../services/terms/change-for-operator.ts";
import { suspendAccount } from "../services/accounts/suspend.ts";
import { getOverview } from "../services/system/overview.ts";
import { getSystem } from "../services/system/get.ts";
import { checkPayments } from "../services/system/check-payments.ts";
import { testMail } from "../services/system/test-mail.ts";
import { changeProfile } from "../services/accounts/change-profile.ts";
import { getAccountDeletion } from "../services/accounts/deletion.ts";
import { exportAccount } from "../services/accounts/export.ts";
import { listSessions } from "../services/accounts/list-sessions.ts";
import { removeAccount } from "../services/accounts/remove.ts";
import { revokeOtherSessions, revokeSession } from "../services/accounts/revoke-session.ts";
import { version } from "../version.ts";

/** Webhooks receive bodies in foreign formats and have their own routes (`routes/webhooks.ts`). */
export type VerbId = {
  [Id in OperationId]: (typeof operations)[Id] extends { anyBody: true } ? never : Id;
}[OperationId];

/** The implementation of an operation; all operations share this signature. */
export type Verb<Id extends OperationId> = (ctx: Ctx, input: Input<Id>) => Promise<Answered<Id>>;

/** Operation → verb. An operation without a verb does not compile. */
export const verbs: { [Id in VerbId]: Verb<Id> } = {
  listSites,
  listAllSites,
  inspectSource,
  createSite,
  getSite,
  patchSite: changeSite,
  cloneSite,
  diagnoseSite,
  probeSite,
  generateSecret,
  listEnvVersions,
  restoreEnvVersion,
  deleteSite: removeSite,
  listDeployments,
  rollbackSite,
  getDeployment,
  explainDeployment,
  compareDeployments,
  cancelDeployment,
  getDeploymentLogs,
  getSiteLogs,
  searchSiteLogs,
  browseFiles,
  getSiteDisk: siteDisk,
  getSiteMetrics: siteMetrics,
  getSiteEvents: siteEventsOf,
  getSiteRequests,
  getSiteRequestStats,
  getSiteHealth: siteHealth,
  listVolumes,
  changeVolume,
  listVolumeBackups,
  createVolumeBackup,
  restoreVolume,
  removeVolume,
  listDomains,
  createDomain,
  getDomain,
  deleteDomain: removeDomain,
  verifyDomain,
  renewDomain,
  listCommands,
  runCommand,
  getCommand,
  cancelCommand,
  getCommandLogs,
  listSchedules,
  createSchedule,
  patchSchedule: changeSchedule,
  deleteSchedule: removeSchedule,
  getWebhook: getWebhookAddress,
  rotateWebhook: rotateWebhookAddress,
  listDatabases,
  listAllDatabases,
  createDatabase,
  getDatabase,
  patchDatabase: changeDatabase,
  deleteDatabase: removeDatabase,
  getDatabaseCredentials: databaseCredentials,
  linkDatabase,
  unlinkDatabase,
  rotateDatabase: rotatePassword,
  getDatabaseInsight: databaseInsight,
  getDatabaseSchema: databaseSchema,
  queryDatabase,
  endDatabaseSession: endSession,
  getDatabaseLogs,
  getDatabaseDisk: databaseDisk,
  getDatabaseMetrics: databaseMetrics,
  getDatabaseEvents: databaseEventsOf,
  listBackups: listBackupsOf,
  createBackup,
  restoreDatabase,
  listAllBackups: listBackups,
  listFailingBackups: listFailing,
  getBackup,
  deleteBackup: removeBackup,
  verifyBackup,
  linkBackup,
  getCredits,
  listCreditPackages,
  purchaseCredits,
  grantCredits,
  listAllCreditPackages,
  createCreditPackage,
  patchCreditPackage: changeCreditPackage,
  chat: sendMessage,
  chatStream: streamMessage,
  getChatPrice,
  listConversations,
  getConversation,
  followConversation,
  patchConversation: renameConversation,
  deleteConversation: removeConversation,
  startDevice,
  pollDevice,
  listKeys,
  createKey,
  revokeOwnKey,
  revokeKey,
  listAccounts,
  getAccountForOperator,
  patchAccount: changeAccount,
  followEvents,
  getBillingDetails,
  patchBillingDetails: changeBillingDetails,
  getSettings,
  patchSettings: changeSettings,
  listNotificationChannels: listChannels,
  createNotificationChannel: createChannel,
  patchNotificationChannel: changeChannel,
  deleteNotificationChannel: removeChannel,
  testNotificationChannel: testChannel,
  listNotificationDeliveries: listDeliveries,
  search,
  patchTerm: changeTermForOperator,
  suspendAccount,
  releaseAccount,
  disableTwoFactor,
  getAccount,
  patchAccountProfile: changeProfile,
  listSessions,
  revokeSession,
  revokeOtherSessions,
  exportAccount,
  getAccountDeletion,
  deleteAccount: removeAccount,
  listUnhealthy,
  getAccountDisk: accountDisk,
  listActivity,
  listAllActivity,
  listPacks,
  listInvoices,
  listAllInvoices,
  getInvoice,
  cancelInvoice,
  listAllPacks,
  createPack,
  patchPack: changePack,
  voidInvoice,
  previewRefund,
  refundInvoice,
  listPaymentFlags: listFlags,
  resolvePaymentFlag: resolveFlag,
  verifyLedger,
  getDns,
  listHosts,
  createHost,
  patchHost: changeHost,
  deleteHost: removeHost,
  getHostUsage: hostUsage,
  listSetAside,
  removeSetAside,
  getOverview,
  getSystem,
  checkPayments,
  testMail,
  listJobs,
  cancelJob,
  retryJob,
  rotateSecrets,
  getHealth: async () => ({ status: "ok", version }),
  // Loaded on first use: no other operation needs the generator.
  getOpenApi: async ({ config }) => ({ ...(await import("../openapi.ts")).openApiDocument(config) }),
};
