-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: yourls
-- ------------------------------------------------------
/*!40101 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;

--
-- Table structure for table `yourls_log`
--

DROP TABLE IF EXISTS `yourls_log`;
CREATE TABLE `yourls_log` (
  `click_id` int NOT NULL AUTO_INCREMENT,
  `click_time` datetime NOT NULL,
  `shorturl` varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `referrer` varchar(200) NOT NULL,
  `user_agent` varchar(255) NOT NULL,
  `ip_address` varchar(41) NOT NULL,
  `country_code` char(2) NOT NULL,
  PRIMARY KEY (`click_id`),
  KEY `shorturl` (`shorturl`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4;

LOCK TABLES `yourls_log` WRITE;
/*!40000 ALTER TABLE `yourls_log` DISABLE KEYS */;
INSERT INTO `yourls_log` VALUES (1,'2026-02-05 10:00:00','summer','direct','Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36','127.0.0.1','DE'),(2,'2026-02-06 11:00:00','summer','https://news.example.net/?q=it''s','Mozilla/5.0 (iPhone; \"x\")','127.0.0.1','');
/*!40000 ALTER TABLE `yourls_log` ENABLE KEYS */;
UNLOCK TABLES;

DROP TABLE IF EXISTS `yourls_options`;
CREATE TABLE `yourls_options` (
  `option_id` bigint unsigned NOT NULL AUTO_INCREMENT,
  `option_name` varchar(64) NOT NULL DEFAULT '',
  `option_value` longtext NOT NULL,
  PRIMARY KEY (`option_id`,`option_name`)
) ENGINE=InnoDB AUTO_INCREMENT=5;
INSERT INTO `yourls_options` VALUES (1,'version','1.9.2'),(2,'note','a; b -- c \\'),(3,'sql','INSERT INTO `yourls_url` VALUES (\'x\')');

DROP TABLE IF EXISTS `yourls_url`;
CREATE TABLE `yourls_url` (
  `keyword` varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  `url` text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `title` text,
  `timestamp` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  `ip` varchar(41) NOT NULL,
  `clicks` int unsigned NOT NULL,
  PRIMARY KEY (`keyword`),
  KEY `timestamp` (`timestamp`),
  KEY `ip` (`ip`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO `yourls_url` VALUES ('summer','https://example.com/sale','It\'s \"Summer\"; (sale), café\\','2026-02-04 12:04:57','127.0.0.1',17),('jobs','https://example.com/jobs',NULL,'2026-02-05 00:00:00','127.0.0.1',0);
INSERT INTO `yourls_url` VALUES ('blog',_binary 'https://example.com/blog',0x426C6F67,'2026-02-06 00:00:00','127.0.0.1',3);
-- Dump completed on 2026-03-01 10:00:00
