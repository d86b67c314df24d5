-- phpMyAdmin SQL Dump
-- version 5.2.1
SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;

CREATE TABLE `short_url` (
  `keyword` varchar(100) NOT NULL DEFAULT '',
  `url` text NOT NULL,
  `title` text DEFAULT NULL,
  `timestamp` timestamp NOT NULL DEFAULT current_timestamp(),
  `ip` varchar(41) NOT NULL,
  `clicks` int(10) UNSIGNED NOT NULL
) ENGINE=InnoDB;

INSERT INTO `short_url` (`keyword`, `url`, `title`, `timestamp`, `ip`, `clicks`) VALUES
('summer', 'https://example.com/sale', 'Summer sale', '2026-02-04 12:04:57', '127.0.0.1', 17),
('jobs', 'https://example.com/jobs', NULL, '2026-02-05 00:00:00', '127.0.0.1', 0);

ALTER TABLE `short_url` ADD PRIMARY KEY (`keyword`);
COMMIT;
